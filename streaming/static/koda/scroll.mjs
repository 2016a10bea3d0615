// The place in the thread: its end stays in view while it grows, unless the reader has gone up.

const NEAR = 80; // px from the end that count as the end

export class Scroll {
  #jump;
  #pinned = true;
  #last = 0;

  /** `jump`: the button that leads to the end. */
  constructor(jump) {
    this.#jump = jump;
    document.addEventListener('scroll', () => this.#look(), { passive: true });
    window.addEventListener('resize', () => this.keep());
    jump.addEventListener('click', () => this.toEnd());
  }

  // Growing moves nothing; only a reader makes the page go up.
  #look() {
    const { scrollHeight } = document.documentElement;
    const isNear = window.innerHeight + window.scrollY > scrollHeight - NEAR;
    if (isNear) this.#pinned = true;
    else if (window.scrollY < this.#last) this.#pinned = false;
    this.#last = window.scrollY;
    this.#jump.hidden = this.#pinned;
  }

  /** After something has grown. */
  keep() {
    if (this.#pinned) window.scrollTo(0, document.documentElement.scrollHeight);
    else this.#look();
  }

  toEnd() {
    this.#pinned = true;
    this.#jump.hidden = true;
    this.keep();
  }
}
