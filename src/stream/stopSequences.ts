/**
 * Finds stop sequences in streamed text: the text before the first one passes, and nothing after it does.
 *
 * An Aho–Corasick automaton over UTF-16 units, built once per request, so that any number of sequences costs one look-up a
 * character and what is held back is exactly the longest suffix that may begin a sequence.
 */
import type { Machine } from "./transducer.ts"

interface Node {
  readonly next: Map<number, Node>
  readonly depth: number
  /** Where the longest proper suffix of this node's text stands; only the root has none. */
  fail: Node | undefined
  /** The longest sequence that ends here. */
  match: string | undefined
}

const makeNode = (depth: number, fail: Node | undefined): Node => ({ next: new Map(), depth, fail, match: undefined })

/** An automaton for a set of sequences. */
export interface StopSequences {
  readonly root: Node
}

/** Builds the automaton; `undefined` when there is no sequence to look for. Empty sequences are ignored. */
export const compileStopSequences = (sequences: ReadonlyArray<string>): StopSequences | undefined => {
  const wanted = sequences.filter((sequence) => sequence !== "")
  if (wanted.length === 0) return undefined
  const root = makeNode(0, undefined)
  for (const sequence of wanted) {
    let node = root
    for (let i = 0; i < sequence.length; i++) {
      const code = sequence.charCodeAt(i)
      let child = node.next.get(code)
      if (child === undefined) {
        child = makeNode(i + 1, root)
        node.next.set(code, child)
      }
      node = child
    }
    node.match = sequence
  }
  const queue: Array<Node> = [...root.next.values()]
  for (let i = 0; i < queue.length; i++) {
    const node = queue[i]!
    for (const [code, child] of node.next) {
      const fail = node.fail === undefined ? root : step(root, node.fail, code)
      child.fail = fail
      child.match ??= fail.match
      queue.push(child)
    }
  }
  return { root }
}

const step = (root: Node, from: Node, code: number): Node => {
  let node = from
  for (;;) {
    const child = node.next.get(code)
    if (child !== undefined) return child
    if (node.fail === undefined) return root
    node = node.fail
  }
}

/** A machine over text pieces that knows which sequence ended the text. */
export interface StopMachine extends Machine<string, string> {
  /** The sequence that was found; from then on everything that is pushed is dropped. */
  readonly found: () => string | undefined
  /** Releases what is held without ending, where something other than text follows. */
  readonly flush: (out: Array<string>) => void
}

/**
 * Starts a machine. The first position at which any sequence is complete decides; of several that end there the longest
 * counts, so that the outcome does not depend on how the text was cut.
 */
export const stopMachine = ({ root }: StopSequences): StopMachine => {
  let node = root
  let held = ""
  let found: string | undefined
  const flush = (out: Array<string>) => {
    if (held !== "") out.push(held)
    held = ""
    node = root
  }
  return {
    found: () => found,
    flush,
    push(text, out) {
      if (found !== undefined) return
      for (let i = 0; i < text.length; i++) {
        node = step(root, node, text.charCodeAt(i))
        if (node.match !== undefined) {
          found = node.match
          const whole = held + text.slice(0, i + 1)
          const before = whole.slice(0, whole.length - found.length)
          held = ""
          if (before !== "") out.push(before)
          return
        }
      }
      if (held === "" && node.depth === 0) {
        if (text !== "") out.push(text)
        return
      }
      const whole = held + text
      const keep = whole.length - node.depth
      if (keep === 0) {
        held = whole
        return
      }
      out.push(whole.slice(0, keep))
      held = whole.slice(keep)
    },
    end: flush
  }
}
