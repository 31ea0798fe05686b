/**
 * The difference between two texts, word by word or line by line.
 */
import { list, record } from "../../state/json.ts"

/** A stretch of text that both have, or one alone. */
export interface Stretch {
  readonly kind: "same" | "removed" | "added"
  readonly text: string
}

/** The largest table of the comparison. Beyond it the middle counts as replaced. */
const mostCells = 1_000_000

const wordsOf = (text: string): ReadonlyArray<string> => text.match(/\s+|[\p{L}\p{N}_]+|[^\s\p{L}\p{N}_]/gu) ?? []

const add = (out: Array<{ kind: Stretch["kind"]; text: string }>, kind: Stretch["kind"], text: string): void => {
  if (text === "") return
  const last = out.at(-1)
  if (last?.kind === kind) last.text += text
  else out.push({ kind, text })
}

/** The stretches in order: what is the same and removed makes `before`; what is the same and added makes `after`. */
export const differenceOf = (
  before: string,
  after: string,
  partsOf: (text: string) => ReadonlyArray<string> = wordsOf
): ReadonlyArray<Stretch> => {
  const [a, b] = [partsOf(before), partsOf(after)]
  let head = 0
  while (head < a.length && head < b.length && a[head] === b[head]) head += 1
  let tail = 0
  while (tail < a.length - head && tail < b.length - head && a[a.length - 1 - tail] === b[b.length - 1 - tail]) {
    tail += 1
  }
  const out: Array<{ kind: Stretch["kind"]; text: string }> = []
  add(out, "same", a.slice(0, head).join(""))
  const [left, right] = [a.slice(head, a.length - tail), b.slice(head, b.length - tail)]
  const width = right.length + 1
  if (left.length * right.length > mostCells) {
    add(out, "removed", left.join(""))
    add(out, "added", right.join(""))
  } else {
    // The length of the longest common part of what follows each pair of places.
    const common = new Uint32Array((left.length + 1) * width)
    for (let i = left.length - 1; i >= 0; i--) {
      for (let j = right.length - 1; j >= 0; j--) {
        common[i * width + j] = left[i] === right[j]
          ? common[(i + 1) * width + j + 1]! + 1
          : Math.max(common[(i + 1) * width + j]!, common[i * width + j + 1]!)
      }
    }
    let [i, j] = [0, 0]
    while (i < left.length || j < right.length) {
      if (i < left.length && j < right.length && left[i] === right[j]) {
        add(out, "same", left[i]!)
        i += 1
        j += 1
      } else if (j >= right.length || (i < left.length && common[(i + 1) * width + j]! >= common[i * width + j + 1]!)) {
        add(out, "removed", left[i]!)
        i += 1
      } else {
        add(out, "added", right[j]!)
        j += 1
      }
    }
  }
  add(out, "same", a.slice(a.length - tail).join(""))
  return out
}

/** A value with the members of its objects in the order in which another one has them, so that their order makes no difference. */
export const inOrderOf = (value: unknown, other: unknown): unknown => {
  if (Array.isArray(value)) return value.map((each, index) => inOrderOf(each, list(other)[index]))
  if (typeof value !== "object" || value === null) return value
  const [own, model] = [record(value), record(other)]
  const names = [...Object.keys(model).filter((name) => Object.hasOwn(own, name)), ...Object.keys(own)]
  return Object.fromEntries([...new Set(names)].map((name) => [name, inOrderOf(own[name], model[name])]))
}

/** A line of a comparison, or a number of equal lines that are left out. */
export type DiffLine = { readonly kind: Stretch["kind"]; readonly text: string } | {
  readonly kind: "equal"
  readonly count: number
}

/** Equal lines that are shown around a difference. */
const context = 3

const linesIn = (text: string): ReadonlyArray<string> => text.match(/[^\n]*\n|[^\n]+$/g) ?? []

/** The lines of two texts, without most of those that are equal. */
export const linesOf = (before: string, after: string): ReadonlyArray<DiffLine> => {
  const stretches = differenceOf(`${before}\n`, `${after}\n`, linesIn)
  return stretches.flatMap(({ kind, text }, index): ReadonlyArray<DiffLine> => {
    const lines = text.replace(/\n$/, "").split("\n").map((each) => ({ kind, text: each }))
    if (kind !== "same") return lines
    const head = index === 0 ? 0 : context
    const tail = index === stretches.length - 1 ? 0 : context
    const left = lines.length - head - tail
    return left < 2
      ? lines
      : [...lines.slice(0, head), { kind: "equal", count: left }, ...tail === 0 ? [] : lines.slice(-tail)]
  })
}
