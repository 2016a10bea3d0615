// Markdown as a list of blocks, each with its place in the text: { type, start, end, … }. Pure.
//
// All blocks but the last are finished: no further text can change them. What stands inside quotes
// and items is text again, for whoever draws them.

const FENCE = /^ {0,3}(`{3,}|~{3,})[ \t]*([^`\n]*)$/;
const HEADING = /^ {0,3}(#{1,6})(?=[ \t]|$)/;
const RULE = /^ {0,3}([-*_])(?:[ \t]*\1){2,}[ \t]*$/;
const QUOTE = /^ {0,3}>[ \t]?/;
const ITEM = /^( {0,3})([-*+]|\d{1,9}[.)])([ \t]+|$)/;
const DELIMITER = /^[ \t]*\|?[ \t]*:?-+:?[ \t]*(?:\|[ \t]*:?-+:?[ \t]*)*\|?[ \t]*$/;
const BLANK = /^[ \t]*$/;
const MAX_COLUMNS = 50;

const SIGNS = /^[ \t]*(?:[-+*_#>`~|=]{1,6}|\d{1,9}[.)]?|[:|-][ \t:|-]*)[ \t]*$/;
const MAX_MARKUP = 1000; // characters of a line that may be all markup; patterns see no longer ones

/** A growing text without a last line that may become anything: `-`, `1.`, `|--`, and the like. */
export function decided(text) {
  const begin = text.lastIndexOf('\n') + 1;
  const line = text.slice(begin);
  return line.length < MAX_MARKUP && SIGNS.test(line) ? text.slice(0, begin) : text;
}

export function parseBlocks(text) {
  const lines = linesOf(text);
  const blocks = [];
  for (let at = 0; at < lines.length;) {
    if (BLANK.test(lines[at].text)) at += 1;
    else {
      const block = READERS.reduce((found, read) => found ?? read(lines, at), undefined);
      const { next, ...rest } = block;
      blocks.push({ ...rest, start: lines[at].start, end: lines[next - 1].end });
      at = next;
    }
  }
  return blocks;
}

function linesOf(text) {
  const lines = [];
  for (let start = 0; start < text.length;) {
    const found = text.indexOf('\n', start);
    const end = found === -1 ? text.length : found + 1;
    lines.push({ text: text.slice(start, end).replace(/\r?\n$/, ''), start, end });
    start = end;
  }
  return lines;
}

const textOf = (lines, from, to) => lines.slice(from, to).map((line) => line.text).join('\n');

// Each looks at the line `at` and answers its block with the `next` line after it, or undefined.
const READERS = [readFence, readHeading, readRule, readQuote, readItem, readTable, readParagraph];

function readFence(lines, at) {
  const opening = FENCE.exec(lines[at].text);
  if (!opening) return undefined;
  const [, fence, info] = opening;
  const closing = new RegExp(`^ {0,3}${fence[0]}{${fence.length},}[ \\t]*$`);
  let next = at + 1;
  while (next < lines.length && !closing.test(lines[next].text)) next += 1;
  const code = textOf(lines, at + 1, next);
  const language = info.trim().split(/\s/)[0];
  return { type: 'code', language, code, next: Math.min(next + 1, lines.length) };
}

function readHeading(lines, at) {
  const found = HEADING.exec(lines[at].text);
  if (!found) return undefined;
  const text = lines[at].text.slice(found[0].length).trim().replace(/(?:^|[ \t])#+$/, '');
  return { type: 'heading', level: found[1].length, text, next: at + 1 };
}

function readRule(lines, at) {
  return RULE.test(lines[at].text) ? { type: 'rule', next: at + 1 } : undefined;
}

function readQuote(lines, at) {
  if (!QUOTE.test(lines[at].text)) return undefined;
  let next = at + 1;
  while (next < lines.length && (QUOTE.test(lines[next].text) || isLazy(lines, next))) next += 1;
  const text = lines.slice(at, next).map((line) => line.text.replace(QUOTE, '')).join('\n');
  return { type: 'quote', text, next };
}

function readItem(lines, at) {
  const found = ITEM.exec(lines[at].text);
  if (!found) return undefined;
  const [marker, indent, bullet, space] = found;
  const content = space.length > 4 || space === '' ? indent.length + bullet.length + 1 : marker.length;
  const belongs = new RegExp(`^(?: {${Math.min(content, 4)},}|\\t)`);
  let next = at + 1;
  while (next < lines.length) {
    const { text } = lines[next];
    const goesOn = BLANK.test(text)
      ? belongs.test(lines[next + 1]?.text ?? '')
      : belongs.test(text) || (isLazy(lines, next) && !ITEM.test(text));
    if (!goesOn) break;
    next += 1;
  }
  const dedent = new RegExp(`^(?: {1,${content}}|\\t)`);
  const inner = lines.slice(at + 1, next).map((line) => line.text.replace(dedent, ''));
  const text = [lines[at].text.slice(marker.length), ...inner].join('\n');
  const number = parseInt(bullet, 10);
  const ordered = !Number.isNaN(number);
  return { type: 'item', kind: ordered ? bullet.at(-1) : bullet, ordered, number, text, next };
}

function readTable(lines, at) {
  const below = lines[at + 1]?.text ?? '';
  if (below.length > MAX_MARKUP || !lines[at].text.includes('|') || !DELIMITER.test(below)) return undefined;
  const header = cellsOf(lines[at].text);
  const delimiters = cellsOf(below);
  if (header.length !== delimiters.length || header.length > MAX_COLUMNS) return undefined;
  const aligns = delimiters.map((cell) => ALIGNS[`${cell.startsWith(':')} ${cell.endsWith(':')}`]);
  let next = at + 2;
  while (next < lines.length && lines[next].text.includes('|')) next += 1;
  const rows = lines.slice(at + 2, next).map((line) => {
    const cells = cellsOf(line.text);
    return header.map((_, column) => cells[column] ?? '');
  });
  return { type: 'table', header, aligns, rows, next };
}

const ALIGNS = { 'true true': 'center', 'false true': 'right', 'true false': '', 'false false': '' };

function cellsOf(line) {
  const inner = line.trim().replace(/^\|/, '').replace(/(?<!\\)\|$/, '');
  return inner.split(/(?<!\\)\|/).map((cell) => cell.trim().replaceAll('\\|', '|'));
}

function readParagraph(lines, at) {
  let next = at + 1;
  while (next < lines.length && isLazy(lines, next) && !readTable(lines, next)) next += 1;
  return { type: 'paragraph', text: textOf(lines, at, next).trim(), next };
}

/** Whether this line goes on with the paragraph before it. A line that begins with a year does. */
function isLazy(lines, at) {
  const { text } = lines[at];
  if (BLANK.test(text) || BLANK.test(lines[at - 1].text)) return false;
  const bullet = ITEM.exec(text)?.[2];
  const begins = bullet !== undefined && (Number.isNaN(parseInt(bullet, 10)) || parseInt(bullet, 10) === 1);
  return !begins && ![FENCE, HEADING, RULE, QUOTE].some((pattern) => pattern.test(text));
}
