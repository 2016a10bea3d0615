// The conversation on the page: its turns, read from the API and followed while they are open. It is
// read again whenever something may have changed elsewhere: once too often is harmless.

import { call, isPassing, newKey } from './api.mjs';
import { follow } from './follow.mjs';
import { readOn } from './log.mjs';
import { isOver, newStory, storyOfRow } from './story.mjs';
import { Turn } from './turn.mjs';

const RETRY = 2000; // ms; 10 s is the longest that a page may be behind
const NONE = 0; // turns begin with 1
const ENDED = new Set(['done', 'failed', 'cancelled']);

export class Thread {
  id = '';
  title = '';
  mergeWindow = 0;
  turns = new Map(); // run id → turn, oldest first
  #root;
  #on;
  #loads = 0;
  #failures = 0;
  #nextLoad;
  #drawing;
  #leave = null;
  #earlier = null;
  #tabs = new BroadcastChannel('koda');
  #seen;

  /**
   * `on` is told: `drawn(thread)` after each change of the page, `ended(turn)`, `trouble(is)`,
   * `refused(message)`, `loaded(thread)`, and `elsewhere(conversation)` when another tab did something.
   */
  constructor(root, on) {
    this.#root = root;
    this.#on = on;
    this.#tabs.onmessage = ({ data }) => {
      on.elsewhere(data);
      if (data === this.id) this.load();
    };
    // The log of what is over is read when somebody is about to look at it.
    this.#seen = new IntersectionObserver((entries) => {
      entries.filter(({ isIntersecting }) => isIntersecting).forEach(({ target }) => this.#look(target));
    }, { rootMargin: '800px' });
  }

  get open() {
    return [...this.turns.values()].filter((turn) => turn.isOpen);
  }

  get newest() {
    return [...this.turns.values()].at(-1);
  }

  get hasEarlier() {
    return this.#earlier !== null && this.#earlier !== NONE;
  }

  /** Shows another conversation; '' for one that begins with the first message. */
  show(id) {
    this.stop();
    this.turns.forEach((turn) => this.#drop(turn));
    Object.assign(this, { id, title: '' });
    this.#loads += 1;
    this.#failures = 0;
    this.#earlier = null;
    this.draw();
    return id ? this.load() : undefined;
  }

  /** Leaves the stream; `load` takes it up again. */
  stop() {
    clearTimeout(this.#nextLoad);
    this.#leave?.();
    this.#leave = null;
  }

  // --- Reading ---

  async load() {
    if (!this.id) return;
    const current = this.#loads += 1;
    try {
      const found = await call('GET', `/api/conversations/${this.id}`);
      if (current !== this.#loads) return;
      this.#on.trouble(false);
      this.#adopt(found);
    } catch (problem) {
      if (current !== this.#loads) return;
      if (isPassing(problem)) this.#tryAgain();
      else this.#giveUp(problem.message);
    }
  }

  #adopt({ title, merge_window_ms: mergeWindow, turns: rows, earlier }) {
    Object.assign(this, { title, mergeWindow });
    const first = earlier === null ? 0 : rows[0].turn; // what comes before these may stay
    const kept = new Set(rows.map((row) => row.run_id));
    this.turns.forEach((turn) => (turn.number >= first && !kept.has(turn.id)) && this.#drop(turn));
    rows.forEach((row) => this.#take(row));
    this.#earlier ??= earlier ?? NONE;
    this.#on.loaded(this);
    this.draw();
    this.#follow();
  }

  /** Puts the turns before these above them. */
  async loadEarlier() {
    const { id } = this;
    const { turns: rows, earlier } = await call('GET', `/api/conversations/${id}?before=${this.#earlier}`);
    if (this.id !== id) return;
    this.#earlier = earlier ?? NONE;
    const later = this.turns;
    this.turns = new Map();
    rows.forEach((row) => this.#take(row));
    this.#root.prepend(...[...this.turns.values()].map(({ article }) => article));
    later.forEach((turn, id) => this.turns.set(id, turn));
    this.draw();
  }

  #take(row) {
    const turn = this.turns.get(row.run_id) ?? this.#add(row.run_id);
    turn.inputs = row.inputs.map((input) => input.text);
    turn.number = row.turn;
    turn.createdAt = Date.parse(row.created_at);
    turn.note = '';
    if (!ENDED.has(row.status) || !turn.isOpen) return;
    if (turn.story.state.lastSequence) return this.#complete(turn, row);
    turn.story = storyOfRow(row);
    turn.hasLog = row.last_seq !== null;
    this.#seen.observe(turn.article);
    return undefined;
  }

  #add(id) {
    const turn = new Turn(id);
    this.turns.set(id, turn);
    this.#root.append(turn.article);
    return turn;
  }

  #drop(turn) {
    this.#seen.unobserve(turn.article);
    turn.article.remove();
    this.turns.delete(turn.id);
  }

  // It ended while we were not listening: what is missing is in the log, else in the row.
  async #complete(turn, row) {
    const story = await readOn(turn.story).catch(() => turn.story);
    turn.story = isOver(story) ? story : storyOfRow(row);
    this.draw();
  }

  // Tools, reasoning and earlier tries stand in the log only. Without it, what the row says stays.
  async #look(article) {
    this.#seen.unobserve(article);
    const turn = this.turns.get(article.dataset.runId);
    const story = turn?.hasLog && await readOn(newStory(turn.id)).catch(() => null);
    if (!story || !isOver(story)) return;
    turn.story = story;
    this.draw();
  }

  // --- Following ---

  // The oldest open run only: no other of its conversation can be at work.
  #follow() {
    const [turn] = this.open;
    if (this.following === turn && this.#leave) return;
    this.stop();
    this.following = turn;
    if (!turn || document.hidden) return;
    this.#leave = follow(turn.id, turn.story, {
      changed: (story) => {
        turn.story = story;
        this.#failures = 0;
        this.draw();
      },
      trouble: this.#on.trouble,
      ended: () => this.#ended(turn),
    });
  }

  #ended(turn) {
    this.stop();
    if (turn.isOpen) return this.#tryAgain(); // refused: the conversation tells why
    this.#on.ended(turn);
    return this.load(); // the next question may have been asked elsewhere
  }

  #tryAgain() {
    this.#failures += 1;
    if (this.#failures > 1) this.#on.trouble(true);
    clearTimeout(this.#nextLoad);
    this.#nextLoad = setTimeout(() => this.load(), this.#failures > 1 ? RETRY : 100);
  }

  #giveUp(message) {
    this.stop();
    this.open.forEach((turn) => { turn.note = message; });
    this.#on.trouble(false);
    this.#on.refused(message);
    this.draw();
  }

  // --- Doing; each throws what `call` throws ---

  async send(text, key) {
    const before = this.id;
    const id = before || (await call('POST', '/api/conversations', { body: {} })).id;
    if (this.id === before) this.id = id; // else somebody has opened another one meanwhile
    const path = `/api/conversations/${id}/messages`;
    return this.#change(id, path, { body: { text }, headers: { 'Idempotency-Key': key } });
  }

  cancel() {
    return this.#change(this.id, `/api/runs/${this.open[0].id}/cancel`);
  }

  regenerate(turn, inputs) {
    const path = `/api/runs/${turn.id}/regenerate`;
    return this.#change(this.id, path, { body: inputs && { inputs }, headers: { 'Idempotency-Key': newKey() } });
  }

  async #change(id, path, options) {
    const answer = await call('POST', path, options);
    this.announce(id);
    if (this.id === id) await this.load();
    return answer;
  }

  /** Tells the other tabs that this conversation has changed. */
  announce(id) {
    this.#tabs.postMessage(id);
  }

  // --- Drawing ---

  // Once for all that arrives together. A page that is not painted gets no animation frames.
  draw() {
    if (this.#drawing) return;
    const once = () => {
      if (this.#drawing !== once) return;
      this.#drawing = undefined;
      const turns = [...this.turns.values()];
      turns.forEach((turn, index) => turn.render({ isLast: index === turns.length - 1, number: turn.number }));
      this.#on.drawn(this);
    };
    this.#drawing = once;
    requestAnimationFrame(once);
    setTimeout(once, 100);
  }
}
