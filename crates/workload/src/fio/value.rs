//! Values as fio writes them (HOWTO, "Parameter types").

use super::job::{Amount, BlockSizes, Distribution, Split, Zone, ZoneExtent};
use base::Span;

/// The most entries of `bssplit`, a direction.
const SPLITS_MAX: usize = 64;
/// The most zones, a direction.
const ZONES_MAX: usize = 256;
/// The largest I/O: as [`crate::problem::SIZE_MAX`].
const SIZE_MAX: u64 = crate::problem::SIZE_MAX.count();

/// Reads values; `kb_base` decides what `k` is.
#[derive(Clone, Copy, Debug)]
pub(super) struct Values {
    /// 1000 or 1024.
    pub kb_base: u64,
}

type Said<T> = Result<T, String>;

impl Values {
    /// A whole number with an optional suffix.
    pub(super) fn integer(self, text: &str) -> Said<u64> {
        let text = text.trim();
        let bad =
            || format!("has the value `{text}`, which is not a whole number with an optional suffix such as k, m, g");
        let (digits, radix, rest) = match text.strip_prefix("0x").or_else(|| text.strip_prefix("0X")) {
            Some(hex) => split_number(hex, |c| c.is_ascii_hexdigit(), 16),
            None => split_number(text, |c| c.is_ascii_digit(), 10),
        };
        let number = u64::from_str_radix(digits, radix).map_err(|_| bad())?;
        let factor = self.factor(rest).ok_or_else(bad)?;
        number.checked_mul(factor).ok_or_else(bad)
    }

    /// What a suffix multiplies with. With `kb_base` 1024, the default, `k` is 1024 and `ki` is
    /// 1000: fio's compatibility mode.
    fn factor(self, suffix: &str) -> Option<u64> {
        let suffix = suffix.trim().to_ascii_lowercase();
        let suffix = suffix.strip_suffix('b').unwrap_or(&suffix);
        let (suffix, is_iec) = suffix.strip_suffix('i').map_or((suffix, false), |short| (short, true));
        let power = match suffix {
            "" if !is_iec => 0,
            "k" => 1,
            "m" => 2,
            "g" => 3,
            "t" => 4,
            "p" => 5,
            _ => return None,
        };
        let base = if is_iec { 2024 - self.kb_base } else { self.kb_base };
        base.checked_pow(power)
    }

    /// A whole number from `min` to `max`.
    pub(super) fn within(self, text: &str, min: u64, max: u64) -> Said<u64> {
        let number = self.integer(text)?;
        let good = (min..=max).contains(&number);
        if good { Ok(number) } else { Err(format!("has the value `{text}`, allowed is {min} to {max}")) }
    }

    /// Bytes or a percentage.
    pub(super) fn amount(self, text: &str) -> Said<Amount> {
        let Some(percent) = text.trim().strip_suffix('%') else { return self.integer(text).map(Amount::Bytes) };
        let number = percent.parse().ok().filter(|number| (1..=100).contains(number));
        number.map(Amount::Percent).ok_or_else(|| format!("has the value `{text}`, allowed is 1% to 100%"))
    }

    /// Up to three values for reads, writes and trims. A value without a following comma also
    /// applies to the later ones. An empty one keeps the previous value.
    pub(super) fn directions<T: Clone>(
        self,
        text: &str,
        slots: &mut [T; 2],
        read: impl Fn(&str) -> Said<T>,
    ) -> Said<()> {
        let parts: Vec<&str> = text.split(',').map(str::trim).collect();
        if parts.len() > 3 {
            return Err(format!("has the value `{text}`, allowed are three parts at most: reads, writes, trims"));
        }
        for (index, slot) in slots.iter_mut().enumerate() {
            // "A value not terminated in a comma applies to subsequent types."
            let part = parts.get(index).or(parts.last()).copied().unwrap_or("");
            if !part.is_empty() {
                *slot = read(part)?;
            }
        }
        Ok(())
    }

    fn block_size(self, text: &str) -> Said<u64> {
        self.within(text, 1, SIZE_MAX)
    }

    /// `bs`
    pub(super) fn one_size(self, text: &str) -> Said<BlockSizes> {
        self.block_size(text).map(|bytes| BlockSizes::One { bytes })
    }

    /// `bsrange`: `min-max` or `min:max`, in either order.
    pub(super) fn size_range(self, text: &str) -> Said<BlockSizes> {
        let ends = text.split_once(['-', ':']);
        let (first, second) =
            ends.ok_or_else(|| format!("has the value `{text}`, which is not a range such as 1k-4k"))?;
        let (first, second) = (self.block_size(first)?, self.block_size(second)?);
        Ok(BlockSizes::Range { min: first.min(second), max: first.max(second) })
    }

    /// `bssplit`: `size/percent:size/percent`, where a percentage that is left out shares what is
    /// left.
    pub(super) fn split(self, text: &str) -> Said<BlockSizes> {
        let parts = percentages(text, ':', |part| {
            let (size, percent) = part.split_once('/').unwrap_or((part, ""));
            Ok((self.block_size(size)?, percent_or_blank(percent)?))
        })?;
        if parts.len() > SPLITS_MAX {
            return Err(format!("has {} sizes, allowed are {SPLITS_MAX}", parts.len()));
        }
        let parts = parts.into_iter().map(|(bytes, percent)| Split { bytes, percent }).collect();
        Ok(BlockSizes::Split { parts })
    }

    /// `random_distribution`
    pub(super) fn distribution(self, text: &str) -> Said<Distribution> {
        let (name, rest) = text.split_once([':', '=']).unwrap_or((text, ""));
        match name.trim() {
            "random" if rest.is_empty() => Ok(Distribution::Uniform),
            "zipf" => {
                let (theta, center) = skew(rest, 1.1)?;
                let is_good = theta > 0.0 && theta != 1.0;
                is_good
                    .then_some(Distribution::Zipf { theta, center })
                    .ok_or_else(|| outside(theta, "positive and not 1"))
            }
            "pareto" => {
                let (power, center) = skew(rest, 0.2)?;
                let is_good = power > 0.0 && power < 1.0;
                is_good
                    .then_some(Distribution::Pareto { power, center })
                    .ok_or_else(|| outside(power, "between 0 and 1"))
            }
            "normal" => {
                let (deviation_percent, center) = skew(rest, 0.0)?;
                let is_good = deviation_percent > 0.0 && deviation_percent <= 100.0;
                let normal = Distribution::Normal { deviation_percent, center: center.unwrap_or(0.5) };
                is_good.then_some(normal).ok_or_else(|| outside(deviation_percent, "above 0 and at most 100"))
            }
            "zoned" => self.zones(rest, |text| percent(text).map(ZoneExtent::Percent)),
            "zoned_abs" => self.zones(rest, |text| self.within(text, 1, u64::MAX).map(ZoneExtent::Bytes)),
            _ => Err(format!(
                "has the value `{text}`, allowed are random, zipf:theta, pareto:power, normal:deviation, zoned:.. and zoned_abs:.."
            )),
        }
    }

    fn zones(self, text: &str, extent: impl Fn(&str) -> Said<ZoneExtent>) -> Said<Distribution> {
        let zones = percentages(text, ':', |part| {
            let (access, size) =
                part.split_once('/').ok_or_else(|| format!("has the zone `{part}`, which has no `/`"))?;
            Ok((extent(size)?, percent_or_blank(access)?))
        })?;
        let sizes: u32 =
            zones.iter().map(|(extent, _)| if let ZoneExtent::Percent(size) = extent { *size } else { 0 }).sum();
        if zones.len() > ZONES_MAX || sizes > 100 {
            return Err(format!("has {} zones of {sizes} % in all, allowed are {ZONES_MAX} of 100 %", zones.len()));
        }
        let zones = zones.into_iter().map(|(extent, access_percent)| Zone { access_percent, extent }).collect();
        Ok(Distribution::Zoned { zones })
    }
}

fn split_number(text: &str, is_digit: impl Fn(char) -> bool, radix: u32) -> (&str, u32, &str) {
    let end = text.find(|c| !is_digit(c)).unwrap_or(text.len());
    (&text[..end], radix, &text[end..])
}

/// Parts with percentages that must come to 100; those that are left out share the rest evenly, the
/// first ones a remainder.
fn percentages<T>(text: &str, separator: char, read: impl Fn(&str) -> Said<(T, Option<u32>)>) -> Said<Vec<(T, u32)>> {
    let parts: Vec<(T, Option<u32>)> = text.split(separator).map(|part| read(part.trim())).collect::<Said<_>>()?;
    let given: u32 = parts.iter().filter_map(|(_, percent)| *percent).sum();
    let blanks = parts.iter().filter(|(_, percent)| percent.is_none()).count() as u32;
    if given > 100 || (blanks == 0 && given != 100) {
        return Err(format!("has the value `{text}`, whose percentages come to {given} and not to 100"));
    }
    let mut blank = 0;
    let share = |percent: Option<u32>| {
        percent.unwrap_or_else(|| {
            blank += 1;
            (100 - given) / blanks + u32::from(blank <= (100 - given) % blanks)
        })
    };
    let shares: Vec<u32> = parts.iter().map(|(_, percent)| *percent).map(share).collect();
    Ok(parts.into_iter().map(|(part, _)| part).zip(shares).collect())
}

fn percent(text: &str) -> Said<u32> {
    let number = text.trim().parse().ok().filter(|number| *number <= 100);
    number.ok_or_else(|| format!("has the percentage `{text}`, allowed is 0 to 100"))
}

fn percent_or_blank(text: &str) -> Said<Option<u32>> {
    if text.trim().is_empty() { Ok(None) } else { percent(text).map(Some) }
}

/// `value[:center]`
fn skew(text: &str, default: f64) -> Said<(f64, Option<f64>)> {
    let (value, center) = text.split_once(':').map_or((text, None), |(value, center)| (value, Some(center)));
    let value = if value.trim().is_empty() { default } else { number(value)? };
    let center = center.map(number).transpose()?;
    match center.filter(|center| !(0.0..=1.0).contains(center)) {
        Some(center) => Err(outside(center, "a centre from 0 to 1")),
        None => Ok((value, center)),
    }
}

fn number(text: &str) -> Said<f64> {
    let number = text.trim().parse().ok().filter(|number: &f64| number.is_finite());
    number.ok_or_else(|| format!("has the value `{text}`, which is not a number"))
}

fn outside(got: f64, allowed: &str) -> String {
    format!("has the value {got}, which is not {allowed}")
}

/// A time, in seconds unless it has a unit.
pub(super) fn time(text: &str) -> Said<Span> {
    let bad = || format!("has the value `{text}`, which is not a time such as 30, 5m or 100ms");
    let (digits, _, unit) = split_number(text.trim(), |c| c.is_ascii_digit(), 10);
    let number: u64 = digits.parse().map_err(|_| bad())?;
    let unit = match unit.trim().to_ascii_lowercase().as_str() {
        "" | "s" | "sec" => Span::secs(1),
        "us" | "usec" => Span::us(1),
        "ms" | "msec" => Span::ms(1),
        "m" => Span::secs(60),
        "h" => Span::secs(3_600),
        "d" => Span::secs(86_400),
        _ => return Err(bad()),
    };
    number.checked_mul(unit.as_ps()).map(Span::ps).ok_or_else(bad)
}

/// A time or a range of times, in either order.
pub(super) fn times(text: &str) -> Said<(Span, Span)> {
    let Some((first, second)) = text.split_once(['-', ':']) else { return time(text).map(|time| (time, time)) };
    let (first, second) = (time(first)?, time(second)?);
    Ok((first.min(second), first.max(second)))
}

/// A truth value; an option without one is true.
pub(super) fn truth(text: &str) -> Said<bool> {
    match text.trim() {
        "" | "1" | "true" => Ok(true),
        "0" | "false" => Ok(false),
        _ => Err(format!("has the value `{text}`, allowed are 0, 1, true and false")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const K1024: Values = Values { kb_base: 1024 };

    #[test]
    fn suffixes_are_those_of_the_howto_for_both_bases() {
        for text in ["4096", "4096b", "4096B", "4k", "4kb", "4kB", "4K", "4KB", "0x1000"] {
            assert_eq!(K1024.integer(text), Ok(4096), "{text}");
        }
        assert_eq!(K1024.integer("1m"), Ok(1 << 20));
        assert_eq!((K1024.integer("1mi"), K1024.integer("1000ki")), (Ok(1_000_000), Ok(1_000_000)));
        assert_eq!((K1024.integer("1t"), K1024.integer("1g")), (Ok(1 << 40), Ok(1 << 30)));
        let k1000 = Values { kb_base: 1000 };
        assert_eq!(
            (k1000.integer("4ki"), k1000.integer("1m"), k1000.integer("1k")),
            (Ok(4096), Ok(1_000_000), Ok(1000))
        );
        for bad in ["", "k", "4x", "1.5k", "-1", "4kk", "i", "99999999999g"] {
            assert!(K1024.integer(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn times_are_seconds_unless_they_say_otherwise() {
        assert_eq!(time("30"), Ok(Span::secs(30)));
        assert_eq!(time("5m"), Ok(Span::secs(300)));
        assert_eq!(
            (time("100ms"), time("7usec"), time("2H")),
            (Ok(Span::ms(100)), Ok(Span::us(7)), Ok(Span::secs(7200)))
        );
        assert!(time("1y").is_err() && time("").is_err() && time("-1").is_err());
        assert_eq!(times("9-3"), Ok((Span::secs(3), Span::secs(9))));
    }

    #[test]
    fn commas_part_reads_from_writes_as_the_howto_shows() {
        let sizes = |text: &str| {
            let mut slots = [4096, 4096];
            K1024.directions(text, &mut slots, |part| K1024.integer(part)).map(|()| slots)
        };
        assert_eq!(sizes("256k"), Ok([262_144, 262_144]));
        assert_eq!(sizes("8k,32k"), Ok([8192, 32_768]));
        assert_eq!(sizes("8k,32k,"), Ok([8192, 32_768]));
        assert_eq!(sizes(",8k"), Ok([4096, 8192]));
        assert_eq!(sizes("8k,"), Ok([8192, 4096]));
        assert!(sizes("1,2,3,4").is_err());
    }

    #[test]
    fn splits_are_those_of_the_howto() {
        let split = |text: &str| match K1024.split(text) {
            Ok(BlockSizes::Split { parts }) => Ok(parts.iter().map(|part| (part.bytes, part.percent)).collect()),
            Ok(_) => unreachable!("a split is a split"),
            Err(why) => Err(why),
        };
        assert_eq!(split("4k/10:64k/50:32k/40"), Ok(vec![(4096, 10), (65_536, 50), (32_768, 40)]));
        assert_eq!(split("4k/50:1k/:32k/"), Ok(vec![(4096, 50), (1024, 25), (32_768, 25)]));
        assert_eq!(split("1k:2k:4k"), Ok(vec![(1024, 34), (2048, 33), (4096, 33)]));
        let much: Result<Vec<(u64, u32)>, String> = split("4k/60:8k/50");
        assert_eq!(much.unwrap_err(), "has the value `4k/60:8k/50`, whose percentages come to 110 and not to 100");
        assert!(split("4k/60:8k/30").is_err() && split("0/100").is_err());
    }

    #[test]
    fn distributions_have_their_defaults_and_bounds() {
        let read = |text| K1024.distribution(text);
        assert_eq!(read("zipf"), Ok(Distribution::Zipf { theta: 1.1, center: None }));
        assert_eq!(read("zipf:1.2:0.25"), Ok(Distribution::Zipf { theta: 1.2, center: Some(0.25) }));
        assert_eq!(read("pareto:0.9"), Ok(Distribution::Pareto { power: 0.9, center: None }));
        assert_eq!(read("normal:20"), Ok(Distribution::Normal { deviation_percent: 20.0, center: 0.5 }));
        let zone = |access_percent, size| Zone { access_percent, extent: ZoneExtent::Percent(size) };
        let zones = vec![zone(60, 10), zone(30, 20), zone(8, 30), zone(2, 40)];
        assert_eq!(read("zoned:60/10:30/20:8/30:2/40"), Ok(Distribution::Zoned { zones }));
        let absolute = Zone { access_percent: 100, extent: ZoneExtent::Bytes(20 << 30) };
        assert_eq!(read("zoned_abs:100/20G"), Ok(Distribution::Zoned { zones: vec![absolute] }));
        for bad in [
            "zipf:1",
            "zipf:-1",
            "pareto:1",
            "normal:0",
            "normal:101",
            "zoned:50/10",
            "zoned:100/101",
            "gauss",
            "zipf:nan",
            "zipf:1.2:7",
        ] {
            assert!(read(bad).is_err(), "{bad}");
        }
    }
}
