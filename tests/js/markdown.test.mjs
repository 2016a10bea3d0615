import assert from 'node:assert/strict';
import { describe, test } from 'node:test';

import { decided, parseBlocks } from '../../streaming/static/koda/blocks.mjs';
import { parseInline, safeHref } from '../../streaming/static/koda/inline.mjs';

/** A tree as something short to read: `<em>a</em>`, links as `<a href>text</a>`. */
function shown(tree) {
  return tree.map((node) => (typeof node === 'string' ? node
    : `<${[node.tag, node.href].filter(Boolean).join(' ')}>${shown(node.children)}</${node.tag}>`)).join('');
}

const types = (text) => parseBlocks(text).map(({ type }) => type);

describe('inside a block', () => {
  const cases = [
    ['a **b** c', 'a <strong>b</strong> c'],
    ['***x***', '<em><strong>x</strong></em>'],
    ['**a *b* c**', '<strong>a <em>b</em> c</strong>'],
    ['~~d~~ ~d~', '<del>d</del> ~d~'],
    ['2 * 3 * 4', '2 * 3 * 4'],
    ['snake_case_name', 'snake_case_name'],
    ['**重点**：内容', '<strong>重点</strong>：内容'],
    ['*a **b* c**', '<em>a **b</em> c**'],
    ['\\*a\\* \\n', '*a* \\n'],
    ['`**a**` `` a`b ``', '<code>**a**</code> <code>a`b</code>'],
    ['`a', '`a'],
    ['a  \nb\\\nc', 'a\nb\nc'],
    ['[a*b*](https://e.org/x_(y) "t")', '<a https://e.org/x_(y)>a<em>b</em></a>'],
    ['![pic](https://e.org/p.png)', '<a https://e.org/p.png>pic</a>'],
    ['see https://e.org/a_b_c.', 'see <a https://e.org/a_b_c>https://e.org/a_b_c</a>.'],
    ['<mailto:a@e.org>', '<a mailto:a@e.org>mailto:a@e.org</a>'],
    ['a<br>b', 'a<br></br>b'],
  ];
  for (const [text, expected] of cases) {
    test(JSON.stringify(text), () => assert.equal(shown(parseInline(text)), expected));
  }
});

describe('in a block that is still being written', () => {
  const cases = [
    ['**bo', '<strong>bo</strong>'],
    ['a `co', 'a <code>co</code>'],
    ['[x](https://e', 'x'],
    ['a **', 'a '],
    ['**a*', '<strong>a</strong>'],
  ];
  for (const [text, expected] of cases) {
    test(JSON.stringify(text), () => assert.equal(shown(parseInline(text, { open: true })), expected));
  }
});

describe('what would like to run', () => {
  for (const address of ['javascript:alert(1)', 'JaVaScRiPt:alert(1)', 'java\nscript:alert(1)', ' javascript:x',
    'data:text/html,x', 'vbscript:x', 'file:///etc', 'blob:https://e.org/x', '/admin/', '//e.org', '#x', '']) {
    test(`is no link: ${JSON.stringify(address)}`, () => {
      assert.equal(safeHref(address), null);
      assert.doesNotMatch(shown(parseInline(`[a](${address}) <${address}> ![a](${address})`)), /<a (?!https:)/);
    });
  }
  test('is text, tags and all', () => {
    const text = '<img src=x onerror=alert(1)><iframe srcdoc="<script>x</script>"></iframe></script>';
    assert.deepEqual(parseInline(text), [text]);
  });
});

describe('blocks', () => {
  const cases = [
    ['a\nb\n\nc', ['paragraph', 'paragraph']],
    ['# a\ntext\n## b', ['heading', 'paragraph', 'heading']],
    ['#tag', ['paragraph']],
    ['a\n---\nb', ['paragraph', 'rule', 'paragraph']],
    ['> a\nb\n> c\n\nd', ['quote', 'paragraph']],
    ['- a\n- b\n  - c\n\n1. x\n\n   y\n2. z', ['item', 'item', 'item', 'item']],
    ['text\n2020. was', ['paragraph']],
    ['1. a\nb\n2. c', ['item', 'item']],
    ['| a | b |\n|--|:-:|\n| 1 |\nend', ['table', 'paragraph']],
    ['a | b\n\n--|--', ['paragraph', 'paragraph']],
    ['```js\n# x\n```\ny', ['code', 'paragraph']],
    ['```\nnever closed', ['code']],
  ];
  for (const [text, expected] of cases) {
    test(JSON.stringify(text), () => assert.deepEqual(types(text), expected));
  }

  test('a table has a cell for each column', () => {
    const [table] = parseBlocks('| a | b\\|c |\n|--|:-:|\n| 1 |');
    assert.deepEqual([table.header, table.aligns, table.rows], [['a', 'b|c'], ['', 'center'], [['1', '']]]);
  });

  test('a finished block stays as it is, wherever the text is cut', () => {
    const text = '# T\n\nA **b** c.\n\n- x\n  1. y\n- z\n\n> q\n\n| a |\n|---|\n| 1 |\n\n```py\nx\n\ny\n```\nend';
    const whole = parseBlocks(text);
    for (let end = 0; end < text.length; end += 1) {
      const blocks = parseBlocks(decided(text.slice(0, end)));
      assert.deepEqual(blocks.slice(0, -1), whole.slice(0, Math.max(0, blocks.length - 1)), `cut at ${end}`);
    }
  });

  test('what may become anything is not shown yet', () => {
    for (const end of ['-', '1.', '##', '```', '**', '> ', '|--']) assert.equal(decided(`a\n${end}`), 'a\n');
    for (const end of ['- a', '1. a', '`a`', '|a']) assert.equal(decided(`a\n${end}`), `a\n${end}`);
  });
});

test('no text takes long, however it is made', () => {
  const parts = ['**a', '[', '`', '[a](', '_a ', '*a_b', '\\', '![a](b', '[a](x "', '> ', '- ', '| ', '# ', '|a\n', '1. a\n', 'a|b\n-|-\n', '-', ' '];
  const began = performance.now();
  for (const part of parts) {
    const text = `[a](${part.repeat(20_000 / part.length)}`;
    parseInline(text, { open: true });
    parseInline(text);
    parseBlocks(decided(`${text}x`));
    parseBlocks(text);
  }
  assert.ok(performance.now() - began < 5000); // it takes 0.2 s; what is quadratic takes minutes
});
