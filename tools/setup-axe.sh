#!/bin/sh
# Fetches axe-core, which checks pages for accessibility, below target/ if it is missing. Prints the path of its script.
set -eu
version=4.14.1
folder=$(dirname "$0")/../target/tools/axe-core-$version
if [ ! -s "$folder/package/axe.min.js" ]; then
  mkdir -p "$folder"
  (cd "$folder" && npm pack --silent "axe-core@$version" >&2 && tar xzf "axe-core-$version.tgz")
fi
echo "$folder/package/axe.min.js"
