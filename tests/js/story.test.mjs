import assert from 'node:assert/strict';
import { describe, test } from 'node:test';

import { toAgentEvent } from '../../streaming/static/koda/log.mjs';
import { isOver, newStory, storyOfRow, tell } from '../../streaming/static/koda/story.mjs';

const LOG = [
  ['run_started', { attempt: 1, agent: 'demo' }],
  ['reasoning', { text: 'Hm.' }],
  ['delta', { text: 'Returning ' }],
  ['tool_started', { tool_call_id: 'a', name: 'find_order', input: { order_id: '1042' } }],
  ['tool_failed', { tool_call_id: 'a', error: 'interrupted' }],
  ['run_restarted', { reason: 'merged', attempt: 1, inputs: ['Return it', 'No, exchange it'] }],
  ['delta', { text: 'An ' }],
  ['tool_started', { tool_call_id: 'a', name: 'find_order' }],
  ['tool_completed', { tool_call_id: 'a', output: null }],
  ['delta', { text: 'ex' }],
  ['delta', { text: 'change.' }],
  ['run_completed', { finish_reason: 'stop', usage: null }],
].map(([type, data], seq) => toAgentEvent('r', { seq, type, data }));

const told = (events, story = newStory('r')) => events.reduce(tell, story);

test('rows of the log become the events of the stream', () => {
  assert.deepEqual(LOG[0], { runId: 'r', sequence: 1, type: 'run_started', attempt: 1, agent: 'demo' });
  assert.deepEqual(LOG[1], { runId: 'r', sequence: 2, type: 'reasoning_delta', delta: 'Hm.' });
  assert.deepEqual(LOG[3].input, { order_id: '1042' });
  assert.deepEqual(toAgentEvent('r', { seq: 0, type: 'run_failed', data: { code: 'x', message: 'y' } }).error, { code: 'x', message: 'y' });
  assert.deepEqual(toAgentEvent('r', { seq: 4, type: 'snapshot', data: { text: 'a' } }), { runId: 'r', sequence: 5, type: 'snapshot', state: { text: 'a' } });
});

describe('a story', () => {
  test('keeps text and tools in their order', () => {
    const parts = told(LOG).parts.map(({ kind, text, id }) => [kind, text ?? id]);
    assert.deepEqual(parts, [['text', 'An '], ['tool', 'a'], ['text', 'exchange.']]);
  });

  test('keeps what a restart made void', () => {
    const [earlier, ...more] = told(LOG).superseded;
    assert.deepEqual(more, []);
    assert.deepEqual([earlier.reason, earlier.reasoning, earlier.tools.a.status], ['merged', 'Hm.', 'failed']);
    assert.deepEqual(earlier.parts.map(({ kind }) => kind), ['text', 'tool']);
  });

  test('is the same object for what it has already', () => {
    const story = told(LOG);
    assert.ok(isOver(story));
    assert.equal(told(LOG, story), story);
  });

  test('is the same however often it is told again from the middle', () => {
    const whole = told(LOG);
    LOG.forEach((_, cut) => {
      const half = told(LOG.slice(0, cut));
      assert.deepEqual(told(LOG.slice(Math.max(0, cut - 3)), half), whole);
    });
  });

  test('parts of different rounds have different keys', () => {
    const keys = (story) => story.parts.map(({ key }) => key);
    const before = keys(told(LOG.slice(0, 5)));
    assert.deepEqual(keys(told(LOG)).filter((key) => before.includes(key)), []);
  });

  test('begins with a row of the list where the log is not read yet', () => {
    const row = { run_id: 'r', status: 'failed', output: 'So far', error: { code: 'x', message: 'y' }, finish_reason: null };
    const { state, parts } = storyOfRow(row);
    assert.deepEqual([state.status, state.error.message, parts], ['failed', 'y', [{ key: '0.0', kind: 'text', text: 'So far' }]]);
  });
});
