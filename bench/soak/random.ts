/**
 * Reproducible random choices: the same words give the same choices on every machine.
 */

/** A source of choices. */
export interface Random {
  /** At least 0, below 1. */
  readonly next: () => number
  /** A whole number from `low` to `high`, both included. */
  readonly whole: (low: number, high: number) => number
  readonly chance: (share: number) => boolean
  readonly pick: <A>(from: ReadonlyArray<A>) => A
  /** One of the names, chosen by weight. */
  readonly weighted: <Name extends string>(weights: Readonly<Record<Name, number>>) => Name
}

/** FNV-1a over the characters of a text. */
const hash = (text: string): number => {
  let value = 0x811c9dc5
  for (let i = 0; i < text.length; i++) value = Math.imul(value ^ text.charCodeAt(i), 0x01000193)
  return value >>> 0
}

/** The choices that follow from `words`. */
export const randomFrom = (...words: ReadonlyArray<string | number>): Random => {
  let state = hash(words.join("/"))
  // Mulberry32: four operations a number, and good enough for a load.
  const next = (): number => {
    state = (state + 0x6d2b79f5) | 0
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state)
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 4_294_967_296
  }
  const whole = (low: number, high: number): number => low + Math.floor(next() * (high - low + 1))
  return {
    next,
    whole,
    chance: (share) => next() < share,
    pick: (from) => from[whole(0, from.length - 1)]!,
    weighted: (weights) => {
      const names = Object.keys(weights) as Array<keyof typeof weights>
      let left = next() * names.reduce((sum, name) => sum + weights[name], 0)
      for (const name of names) {
        left -= weights[name]
        if (left < 0) return name
      }
      return names.at(-1)!
    }
  }
}
