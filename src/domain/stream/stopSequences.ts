/**
 * Finds stop sequences in streamed text: the text before the first one passes, the rest is dropped.
 *
 * An Aho–Corasick automaton over UTF-16 units, built once per request. Any number of sequences costs a few look-ups per character, and
 * the held text is exactly the longest suffix that may begin a sequence.
 */
import type { Meter } from "./cooperative.ts"
import type { Machine } from "./transducer.ts"

/**
 * An automaton for a set of sequences, in typed arrays: a state is an index, 0 the root; a state's children are linked through
 * `sibling`. Memory is a constant per character of the sequences.
 */
export interface StopSequences {
  readonly sequences: ReadonlyArray<string>
  /** The character on the edge to the state. */
  readonly code: Uint16Array
  readonly firstChild: Int32Array
  readonly sibling: Int32Array
  /** The state of the longest proper suffix of this one's text. */
  readonly fail: Int32Array
  readonly depth: Int32Array
  /** The index of a sequence that begins with the state's text. */
  readonly origin: Int32Array
  /** The index of the longest sequence that ends in the state, or -1. */
  readonly match: Int32Array
}

const childOf = ({ code, firstChild, sibling }: StopSequences, state: number, character: number): number => {
  let child = firstChild[state]!
  while (child !== 0 && code[child] !== character) child = sibling[child]!
  return child
}

/** Builds the automaton. Empty sequences are ignored; returns `undefined` without any other. */
export const compileStopSequences = (sequences: ReadonlyArray<string>, meter?: Meter): StopSequences | undefined => {
  const wanted = sequences.filter((sequence) => sequence !== "")
  if (wanted.length === 0) return undefined
  const most = 1 + wanted.reduce((sum, sequence) => sum + sequence.length, 0)
  const made: StopSequences = {
    sequences: wanted,
    code: new Uint16Array(most),
    firstChild: new Int32Array(most),
    sibling: new Int32Array(most),
    fail: new Int32Array(most),
    depth: new Int32Array(most),
    origin: new Int32Array(most),
    match: new Int32Array(most).fill(-1)
  }
  const { code, depth, fail, firstChild, match, origin, sibling } = made
  let states = 1
  for (let k = 0; k < wanted.length; k++) {
    const sequence = wanted[k]!
    let state = 0
    for (let i = 0; i < sequence.length; i++) {
      const character = sequence.charCodeAt(i)
      let child = childOf(made, state, character)
      if (child === 0) {
        child = states++
        code[child] = character
        depth[child] = i + 1
        origin[child] = k
        sibling[child] = firstChild[state]!
        firstChild[state] = child
      }
      state = child
      if (meter !== undefined) meter.steps++
    }
    match[state] = k
  }
  // Breadth first, so that a state's suffixes, which are shorter, are finished before it.
  const queue = new Int32Array(states)
  let filled = 1
  for (let taken = 0; taken < filled; taken++) {
    const state = queue[taken]!
    for (let child = firstChild[state]!; child !== 0; child = sibling[child]!) {
      fail[child] = state === 0 ? 0 : step(made, fail[state]!, code[child]!, meter)
      if (match[child] === -1) match[child] = match[fail[child]!]!
      queue[filled++] = child
      if (meter !== undefined) meter.steps++
    }
  }
  return made
}

const step = (automaton: StopSequences, from: number, character: number, meter?: Meter): number => {
  for (let state = from;; state = automaton.fail[state]!) {
    if (meter !== undefined) meter.steps++
    const child = childOf(automaton, state, character)
    if (child !== 0) return child
    if (state === 0) return 0
  }
}

/** A machine over text pieces that reports which sequence ended the text. */
export interface StopMachine extends Machine<string, string> {
  /** The sequence that was found; later input is dropped. */
  readonly found: () => string | undefined
  /** Emits the held text without ending, before something other than text. */
  readonly flush: (out: Array<string>) => void
}

/**
 * Starts a machine. The first position at which any sequence is complete decides; of several that end there, the longest counts. So the
 * outcome does not depend on the cuts.
 */
export const stopMachine = (automaton: StopSequences, meter?: Meter): StopMachine => {
  const { depth, match, origin, sequences } = automaton
  let state = 0
  let found: string | undefined
  /** Emits the first `count` characters of the text that the state `held` holds and of `text` behind it. */
  const take = (held: number, text: string, count: number, out: Array<string>) => {
    if (count <= 0) return
    if (meter !== undefined) meter.steps += count
    const before = sequences[origin[held]!]!.slice(0, Math.min(count, depth[held]!))
    out.push(count > before.length ? before + text.slice(0, count - before.length) : before)
  }
  const flush = (out: Array<string>) => {
    take(state, "", depth[state]!, out)
    state = 0
  }
  return {
    found: () => found,
    flush,
    push(text, out) {
      if (found !== undefined) return
      const held = state
      for (let i = 0; i < text.length; i++) {
        state = step(automaton, state, text.charCodeAt(i), meter)
        if (match[state] !== -1) {
          found = sequences[match[state]!]!
          take(held, text, depth[held]! + i + 1 - found.length, out)
          state = 0
          return
        }
      }
      if (held === 0 && depth[state] === 0) {
        if (text !== "") out.push(text)
        return
      }
      take(held, text, depth[held]! + text.length - depth[state]!, out)
    },
    end: flush
  }
}
