import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { describe, test } from 'node:test';

import { ReducerError, initialAgentState, reduceAgentEvent } from '../../streaming/static/koda/reducer.mjs';

const RUN = 'r';

/** Numbers [type, fields] pairs from 1, as a run's log is. */
function numbered(...events) {
  return events.map(([type, fields], index) => ({ runId: RUN, sequence: index + 1, type, ...fields }));
}

function deepFreeze(value) {
  if (value === null || typeof value !== 'object') return value;
  Object.values(value).forEach(deepFreeze);
  return Object.freeze(value);
}

function apply(events, state = initialAgentState(RUN)) {
  return events.reduce((before, event) => deepFreeze(reduceAgentEvent(before, deepFreeze(event))), deepFreeze(state));
}

function refuses(events, message) {
  const state = apply(events.slice(0, -1));
  assert.throws(() => reduceAgentEvent(state, events.at(-1)), (error) => {
    assert.ok(error instanceof ReducerError);
    assert.match(error.message, message);
    return true;
  });
}

const EXAMPLE = numbered(
  ['run_started'],
  ['token_delta', { delta: '你' }],
  ['tool_started', { toolCallId: 't', name: 'search' }],
  ['tool_completed', { toolCallId: 't', output: [] }],
  ['run_completed'],
);

const WITH_RESTART = numbered(
  ['run_started', { attempt: 1, agent: 'demo' }],
  ['reasoning_delta', { delta: 'Hm.' }],
  ['token_delta', { delta: 'Returning ' }],
  ['tool_started', { toolCallId: 'a', name: 'find_order', input: { order_id: '1042' } }],
  ['tool_completed', { toolCallId: 'a', output: { order_state: 'shipped' } }],
  ['tool_started', { toolCallId: 'b', name: 'find_order' }],
  ['tool_failed', { toolCallId: 'b', error: 'interrupted' }],
  ['run_restarted', { reason: 'merged', attempt: 1, inputs: ['Return it', 'No, exchange it'] }],
  ['token_delta', { delta: 'An ' }],
  ['tool_started', { toolCallId: 'a', name: 'find_order' }],
  ['tool_completed', { toolCallId: 'a', output: null }],
  ['token_delta', { delta: 'exchange.' }],
  ['run_completed', { finishReason: 'stop' }],
);

describe('the shared table', () => {
  const table = JSON.parse(readFileSync(new URL('../reducer_cases.json', import.meta.url), 'utf8'));
  for (const { name, steps } of table) {
    test(name, () => {
      let state = deepFreeze(initialAgentState(RUN));
      for (const step of steps) {
        const event = deepFreeze({ runId: RUN, ...step.event });
        if ('error' in step) {
          assert.throws(() => reduceAgentEvent(state, event), { message: step.error });
          continue;
        }
        const next = deepFreeze(reduceAgentEvent(state, event));
        if (step.same) assert.strictEqual(next, state);
        if ('state' in step) assert.deepStrictEqual(next, step.state);
        state = next;
      }
    });
  }
});

describe('the example', () => {
  test('ends completed', () => {
    assert.deepStrictEqual(apply(EXAMPLE), {
      runId: RUN,
      status: 'completed',
      lastSequence: 5,
      text: '你',
      tools: { t: { status: 'completed', name: 'search', output: [] } },
      error: null,
    });
  });

  test('its last event once more gives the same object', () => {
    const state = apply(EXAMPLE);
    assert.strictEqual(reduceAgentEvent(state, EXAMPLE.at(-1)), state);
  });

  test('a first event numbered 2 is a gap', () => {
    refuses([{ runId: RUN, sequence: 2, type: 'run_started' }], /gap/);
  });
});

test('the initial state is exactly this', () => {
  assert.deepStrictEqual(initialAgentState(RUN), {
    runId: RUN, status: 'idle', lastSequence: 0, text: '', tools: {}, error: null,
  });
});

describe('what a reader sees twice changes nothing', () => {
  for (const [name, log] of Object.entries({ example: EXAMPLE, 'with a restart': WITH_RESTART })) {
    test(`${name}: the whole log twice`, () => {
      assert.deepStrictEqual(apply([...log, ...log]), apply(log));
    });

    test(`${name}: every overlap at every cut`, () => {
      for (let cut = 0; cut <= log.length; cut += 1) {
        for (let from = 0; from <= cut; from += 1) {
          assert.deepStrictEqual(apply(log.slice(from), apply(log.slice(0, cut))), apply(log));
        }
      }
    });

    test(`${name}: every event twice`, () => {
      assert.deepStrictEqual(apply(log.flatMap((event) => [event, event])), apply(log));
    });
  }
});

test('a hole anywhere is a gap, and no token is glued on', () => {
  for (let missing = 0; missing < WITH_RESTART.length - 1; missing += 1) {
    refuses([...WITH_RESTART.slice(0, missing), WITH_RESTART[missing + 1]], /gap/);
  }
});

describe('tool call ids are any text', () => {
  const names = ['__proto__', 'constructor', 'hasOwnProperty', 'toString', ''];
  for (const toolCallId of names) {
    test(JSON.stringify(toolCallId), () => {
      const log = numbered(
        ['run_started'],
        ['tool_started', { toolCallId, name: 'search' }],
        ['tool_completed', { toolCallId, output: 1 }],
      );
      const { tools } = apply(log);
      assert.deepStrictEqual(tools, JSON.parse(
        `{${JSON.stringify(toolCallId)}: {"status": "completed", "name": "search", "output": 1}}`,
      ));
      assert.strictEqual(Object.getPrototypeOf(tools), Object.prototype);
      assert.strictEqual({}.status, undefined);
    });

    test(`${JSON.stringify(toolCallId)} completes only after it started`, () => {
      refuses(numbered(['run_started'], ['tool_completed', { toolCallId, output: 1 }]), /not running/);
    });
  }

  test('nor does the type find what every object has', () => {
    for (const type of names) refuses(numbered([type]), /unknown event type/);
  });
});
