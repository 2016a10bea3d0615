// The page's words, in the reader's language. The server puts them into the page; see koda/texts.py.

const TEXTS = JSON.parse(globalThis.document?.getElementById('texts').textContent ?? '{}');

/** The text of this name, with `{name}` replaced by the values given. */
export function t(name, values = {}) {
  return (TEXTS[name] ?? name).replace(/\{(\w+)\}/g, (whole, key) => values[key] ?? whole);
}
