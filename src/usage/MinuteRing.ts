/**
 * The last hours by minutes: a value for each minute that has one, at most 60 an hour. A minute is identified by its number, so minutes that a
 * changed clock has left behind or ahead have no value.
 */

/** The length of a minute in milliseconds. */
export const minuteMillis = 60_000
/** The minutes of the hour. */
export const minutesKept = 60

/** The number of the minute that contains a time in Unix milliseconds. */
export const minuteOf = (time: number): number => Math.floor(time / minuteMillis)

/** Whether a minute belongs to the hour that ends with the minute `newest`. */
export const isWithinHour = (minute: number, newest: number): boolean =>
  minute > newest - minutesKept && minute <= newest

/** A place is in use for one minute of each round of its hours. */
export class MinuteRing<A> {
  readonly #minutes: Float64Array
  readonly #values: Array<A> = []
  readonly #make: () => A

  /** `make` makes the value of a minute that has none yet. */
  constructor(make: () => A, hours = 1) {
    this.#minutes = new Float64Array(hours * minutesKept).fill(Number.NaN)
    this.#make = make
  }

  /** The value of a minute, which takes the place of an earlier or later one. */
  at(minute: number): A {
    const places = this.#minutes.length
    const place = ((minute % places) + places) % places
    if (this.#minutes[place] !== minute) {
      this.#minutes[place] = minute
      this.#values[place] = this.#make()
    }
    return this.#values[place]!
  }

  /** The minutes of the hour that ends with the minute `newest`, each with its value, in any order. */
  *within(newest: number): Generator<readonly [minute: number, value: A]> {
    for (let place = 0; place < this.#minutes.length; place++) {
      const minute = this.#minutes[place]!
      if (isWithinHour(minute, newest)) yield [minute, this.#values[place]!]
    }
  }
}
