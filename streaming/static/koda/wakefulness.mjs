// When the page may be behind: it was hidden, asleep, offline, or nobody has touched it for long.
//
// A hidden page holds no connection. A visible one asks what is new of its own accord ever more
// rarely, and at once when somebody comes back to it: that is for what other devices do.

const FIRST = 30_000; // ms until a page that nothing happens on asks for news
const RAREST = 300_000;
const TOUCHED = 10_000; // ms; news older than this are stale for somebody who is there
const SLEPT = 5000; // ms by which a clock of seconds is late only after sleep

export class Wakefulness {
  #on;
  #read = Date.now(); // when the page was last current
  #wait = FIRST;
  #tick = Date.now();

  /**
   * `on`: `asleep()`; `awake()` when everything should be read again; `stale()` when a look at the
   * conversation is due; `offline()`.
   */
  constructor(on) {
    this.#on = on;
    document.addEventListener('visibilitychange', () => (document.hidden ? on.asleep() : this.#wake()));
    window.addEventListener('pagehide', () => on.asleep()); // for the back-forward cache
    window.addEventListener('pageshow', ({ persisted }) => persisted && this.#wake());
    window.addEventListener('online', () => {
      on.asleep(); // what is left of the line is dead
      this.#wake();
    });
    window.addEventListener('offline', () => on.offline());
    for (const type of ['focus', 'pointerdown', 'pointermove', 'keydown']) {
      window.addEventListener(type, () => this.#touched(), { passive: true });
    }
    setInterval(() => this.#clock(), 1000);
  }

  /** The page is current as of now. */
  fresh() {
    this.#read = Date.now();
  }

  #wake() {
    if (document.hidden) return;
    this.fresh();
    this.#wait = FIRST;
    this.#on.awake();
  }

  #touched() {
    if (Date.now() - this.#read > TOUCHED) this.#wake();
  }

  #clock() {
    const late = Date.now() - this.#tick - 1000;
    this.#tick = Date.now();
    if (document.hidden) return;
    if (late > SLEPT) this.#on.asleep();
    if (late > SLEPT) return void this.#wake();
    if (Date.now() - this.#read < this.#wait) return;
    this.#wait = Math.min(2 * this.#wait, RAREST);
    this.fresh();
    this.#on.stale();
  }
}
