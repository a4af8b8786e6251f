// Draws every specification of the page into the element before it, as wide as there is room and in the page's colours.
// `data-figures` on the root element says when all are done, and each drawing says `drawn` or `failed`: the tests wait for that.
(() => {
  "use strict";
  const root = document.documentElement;
  const night = matchMedia("(prefers-color-scheme: dark)");
  const options = { mode: "vega-lite", renderer: "svg", actions: false, ast: true, loader: { load: () => Promise.reject(new Error("this page loads nothing")) } };
  const kept = key => { try { return localStorage.getItem(key); } catch { return null; } };
  const isDark = () => (root.dataset.theme || (night.matches ? "dark" : "light")) === "dark";

  // Colours of a dark page: neutral ones by their use, others lighter. Lightness stays in order, so colours that differ go on differing.
  const neutral = { "#ffffff": "#14181f", "#1f2430": "#e8ebf0", "#3a4150": "#c9cfd9", "#4a5160": "#c9cfd9", "#e6e9ee": "#2c333f", "#8b93a1": "#8b93a1" };
  const lighter = colour => {
    const [r, g, b] = [1, 3, 5].map(at => parseInt(colour.slice(at, at + 2), 16) / 255);
    const [high, low] = [Math.max(r, g, b), Math.min(r, g, b)];
    const lightness = (high + low) / 2, target = 0.5 + 0.4 * lightness;
    const chroma = high - low, room = 1 - Math.abs(2 * lightness - 1);
    const gain = room > 0 ? (1 - Math.abs(2 * target - 1)) / room : 0;
    const channel = value => Math.round(255 * Math.min(1, Math.max(0, target + (value - lightness) * (chroma > 0 ? gain : 0))));
    return "#" + [r, g, b].map(value => channel(value).toString(16).padStart(2, "0")).join("");
  };
  const recoloured = part => {
    if (typeof part === "string") return /^#[0-9a-f]{6}$/.test(part) ? neutral[part] || lighter(part) : part;
    if (Array.isArray(part)) return part.map(recoloured);
    if (part === null || typeof part !== "object") return part;
    return Object.fromEntries(Object.entries(part).map(([key, value]) => [key, key === "values" ? value : recoloured(value)]));
  };

  const NARROW = 760;
  const visit = (part, act) => {
    if (part === null || typeof part !== "object") return;
    act(part);
    for (const [key, value] of Object.entries(part)) if (key !== "values") visit(value, act);
  };
  // Lines of a title, none longer than there is room.
  const lines = (title, room) => {
    const most = Math.max(16, Math.floor(room / 7.5));
    return title.split(" ").reduce((rows, word) => {
      const last = rows.length - 1;
      if (last >= 0 && rows[last].length + 1 + word.length <= most) rows[last] += " " + word;
      else rows.push(word);
      return rows;
    }, []);
  };
  // Legends above instead of beside; titles of axes in lines; names of places slanted where they would collide.
  const narrow = (specification, room) => visit(specification, part => {
    if (part.x && typeof part.x.title === "string") part.x.title = lines(part.x.title, room - 70);
    if (part.legend && part.legend.orient) Object.assign(part.legend, { orient: "top", direction: "horizontal" });
    if (part.x && part.x.type === "nominal" && part.x.axis) {
      const names = part.x.sort || [];
      const letters = names.reduce((sum, name) => sum + String(name).length + 2, 0);
      if (letters * 7 > room) Object.assign(part.x.axis, { labelAngle: -50, labelLimit: 110 });
    }
    if (part.x && part.x.axis && part.x.axis.tickCount) part.x.axis.tickCount = 5;
  });
  // Legends above have as many columns as fit.
  const legends = (specification, room) => visit(specification, part => {
    if (!part.legend || part.legend.orient !== "top") return;
    const names = (part.scale && part.scale.domain) || [];
    const longest = Math.max(8, ...names.map(name => String(name).length));
    Object.assign(part.legend, { columns: Math.max(1, Math.min(8, Math.floor((room - 60) / (longest * 7.5 + 40)))), labelLimit: room - 100 });
  });
  const panels = specification => specification.hconcat || specification.vconcat || [specification.spec || specification];
  // Panels of a figure beside each other, by the room.
  const arranged = (original, room) => {
    const specification = structuredClone(original);
    const meant = specification.hconcat ? specification.hconcat.length : specification.facet ? specification.columns : 1;
    const widest = panels(specification)[0].width * meant;
    let columns = meant;
    if (room < NARROW) {
      narrow(specification, room);
      columns = specification.facet && room >= 560 ? Math.min(2, columns) : 1;
      if (specification.hconcat) {
        specification.vconcat = specification.hconcat;
        delete specification.hconcat;
      }
      if (specification.facet) specification.columns = columns;
    }
    legends(specification, room);
    const height = panels(specification)[0].height;
    visit(specification, part => {
      if (part.y && typeof part.y.title === "string") part.y.title = lines(part.y.title, height);
    });
    return { specification, columns, widest: Math.floor(widest / columns) };
  };

  const views = new Map();
  const draw = async script => {
    const place = script.previousElementSibling;
    const original = JSON.parse(script.textContent);
    const room = place.clientWidth;
    const { specification, columns, widest } = arranged(isDark() ? recoloured(original) : original, room);
    // Vega names the element after the description.
    specification.description = place.getAttribute("aria-label");
    let width = Math.min(widest, Math.floor((room - 70 * columns) / columns));
    try {
      // What axes and legends take is known when they have been drawn.
      for (let round = 0; round < 4; round += 1) {
        panels(specification).forEach(panel => { panel.width = width; });
        if (views.has(script)) views.get(script).finalize();
        const result = await vegaEmbed(place, specification, options);
        views.set(script, result);
        const over = Number(place.querySelector("svg").getAttribute("width")) - room;
        if (over <= 0 && (over > -12 || width >= widest)) break;
        const next = Math.max(120, Math.min(widest, width - Math.ceil(over / columns) - (over > 0 ? 1 : 0)));
        if (next === width) break;
        width = next;
      }
      place.classList.add("drawn");
    } catch (error) {
      place.classList.add("failed");
      place.textContent = "This figure could not be drawn: " + error.message + " Its numbers are below.";
      console.error(error);
    }
  };

  // Files of a figure are drawn anew: light, and as wide as they were meant.
  const save = (name, blob) => {
    const link = document.createElement("a");
    link.href = URL.createObjectURL(blob);
    link.download = name;
    link.click();
    setTimeout(() => URL.revokeObjectURL(link.href), 10000);
  };
  const bytes = text => Uint8Array.from(text, letter => letter.charCodeAt(0) & 255);
  // One page with one picture (PDF 1.4), 72 units an inch.
  const pdf = (canvas, scale) => {
    const picture = atob(canvas.toDataURL("image/jpeg", 0.95).split(",")[1]);
    const [width, height] = [canvas.width / scale * 0.75, canvas.height / scale * 0.75].map(size => size.toFixed(2));
    const content = `q ${width} 0 0 ${height} 0 0 cm /I Do Q`;
    const objects = [
      "<</Type/Catalog/Pages 2 0 R>>", "<</Type/Pages/Kids[3 0 R]/Count 1>>",
      `<</Type/Page/Parent 2 0 R/MediaBox[0 0 ${width} ${height}]/Contents 4 0 R/Resources<</XObject<</I 5 0 R>>>>>>`,
      `<</Length ${content.length}>>\nstream\n${content}\nendstream`,
      `<</Type/XObject/Subtype/Image/Width ${canvas.width}/Height ${canvas.height}/ColorSpace/DeviceRGB/BitsPerComponent 8/Filter/DCTDecode/Length ${picture.length}>>\nstream\n${picture}\nendstream`,
    ];
    let text = "%PDF-1.4\n";
    const offsets = objects.map((object, index) => {
      const offset = text.length;
      text += `${index + 1} 0 obj\n${object}\nendobj\n`;
      return String(offset).padStart(10, "0") + " 00000 n \n";
    });
    const start = text.length;
    text += `xref\n0 6\n0000000000 65535 f \n${offsets.join("")}trailer\n<</Size 6/Root 1 0 R>>\nstartxref\n${start}\n%%EOF\n`;
    return bytes(text);
  };
  const exported = async (script, form) => {
    const name = script.closest("figure").id + "." + form;
    const { view } = await vegaEmbed(document.createElement("div"), JSON.parse(script.textContent), options);
    if (form === "svg") return save(name, new Blob([await view.toSVG()], { type: "image/svg+xml" }));
    const canvas = await view.toCanvas(3);
    if (form === "pdf") return save(name, new Blob([pdf(canvas, 3)], { type: "application/pdf" }));
    return canvas.toBlob(blob => save(name, blob), "image/png");
  };
  const buttons = script => {
    const place = script.closest("figure").querySelector(".beneath");
    if (!place) return;
    for (const form of ["svg", "png", "pdf"]) {
      const button = document.createElement("button");
      button.type = "button";
      button.textContent = form.toUpperCase();
      button.setAttribute("aria-label", "Download as " + form.toUpperCase());
      button.addEventListener("click", () => exported(script, form).catch(error => console.error(error)));
      place.append(button);
    }
  };

  const scripts = [...document.querySelectorAll("script.specification")];
  const all = async () => {
    for (const script of scripts) await draw(script);
    root.dataset.figures = "done";
  };
  const wish = kept("rackweave-theme");
  if (wish) root.dataset.theme = wish;
  for (const button of document.querySelectorAll("button.theme")) {
    button.hidden = false;
    button.addEventListener("click", () => {
      root.dataset.theme = isDark() ? "light" : "dark";
      try { localStorage.setItem("rackweave-theme", root.dataset.theme); } catch { /* It holds for this page then. */ }
      all();
    });
  }
  if (innerWidth < 1100) for (const list of document.querySelectorAll("nav.contents details")) list.open = false;
  let width = innerWidth, timer = 0;
  addEventListener("resize", () => {
    clearTimeout(timer);
    if (innerWidth !== width) timer = setTimeout(() => { width = innerWidth; all(); }, 150);
  });
  night.addEventListener("change", all);
  scripts.forEach(buttons);
  all();
})();
