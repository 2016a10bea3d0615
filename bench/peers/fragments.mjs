// What `bench/fragments.py` makes, in Node: see there.

/** Seconds of the monotonic clock, the same that Python's time.monotonic() shows. */
export const clock = () => Number(process.hrtime.bigint()) / 1e9

const sleep = (seconds) => new Promise((resolve) => setTimeout(resolve, seconds * 1000))

/** Timers are good for milliseconds, so one that is early goes on until it is time. */
async function until (time) {
  while (clock() < time) await sleep(Math.max(0, time - clock()))
}

export async function * fragments (plan) {
  await until(plan.at)
  const stop = clock() + plan.limit
  for (let number = 0; number < plan.count; number++) {
    if (plan.rate) await until(plan.at + number / plan.rate)
    const now = clock()
    const last = number === plan.count - 1 || (!plan.rate && now > stop)
    yield `${number}@${now.toFixed(6)}${last ? '!' : ';'}`
    if (last) return
  }
}
