/**
 * The document that a session reply's patches build up (upstream-protocol, "The event stream").
 *
 * It is tolerant: a patch that does not apply changes nothing. It never throws and only touches the document's own properties.
 * Patches are reported as changes, so that readers need not compare whole documents.
 */

import { isRecord, type JsonRecord } from "../../domain/json.ts"
import type { Meter } from "../../domain/stream/cooperative.ts"

/** What one patch did to the document. Paths are resolved: `-1` has become an index. */
export type Change =
  /** The whole document was replaced; `snapshot`: by a patch with neither path nor operation. */
  | { readonly _tag: "Root"; readonly snapshot: boolean }
  /** The string at `path` grew by `text`; `owner[key]` holds it. */
  | {
    readonly _tag: "Grown"
    readonly path: ReadonlyArray<string>
    readonly owner: JsonRecord
    readonly key: string
    readonly text: string
  }
  /** The array at `path` gained elements from index `from` on. */
  | { readonly _tag: "Extended"; readonly path: ReadonlyArray<string>; readonly from: number }
  /** The value at `path` was replaced; `owner` is the object that it is a property of, `undefined` for an array's element. */
  | {
    readonly _tag: "Replaced"
    readonly path: ReadonlyArray<string>
    readonly owner: JsonRecord | undefined
    readonly before: unknown
    readonly value: unknown
  }

const maxSegments = 32
const maxPath = 1024
const maxBatchDepth = 8

/** Elements that are kept; more of them are ignored. */
export const mostFragments = 10_000
export const mostSearchResults = 1_000

const mostElements = (key: string): number =>
  key === "search_results" || key === "results" ? mostSearchResults : mostFragments

/** The channel of a fragment's text, if it has text. */
export const fragmentChannel = (fragment: unknown): "reasoning" | "text" | undefined => {
  if (!isRecord(fragment)) return undefined
  return fragment["type"] === "RESPONSE" ? "text" : fragment["type"] === "THINK" ? "reasoning" : undefined
}

/** The segments of a path; a path that is too long yields too many segments. */
const split = (path: string): ReadonlyArray<string> => {
  const parts = (path.length > maxPath ? "/x".repeat(maxSegments + 1) : path).split("/", maxSegments + 2)
  return parts.includes("") ? parts.filter((part) => part !== "") : parts
}

/** True for the two strings of older documents, on which a missing operation is `APPEND`. */
const isOlderText = (path: ReadonlyArray<string>): boolean =>
  path.length === 2 && path[0] === "response" && (path[1] === "content" || path[1] === "thinking_content")

const isIndex = (segment: string): boolean => segment === "-1" || /^\d{1,9}$/.test(segment)

/** A segment that names a property which may be made. */
const isName = (segment: string): boolean => segment !== "__proto__" && !isIndex(segment)

/** The index of a segment in an array; -1 if it has none. One past the end is the place of a new element. */
const indexIn = (array: ReadonlyArray<unknown>, segment: string): number => {
  if (segment === "-1") return array.length - 1
  const index = isIndex(segment) ? Number(segment) : -1
  return index <= array.length ? index : -1
}

const makeSticky = () => ({
  path: undefined as string | undefined,
  segments: [] as ReadonlyArray<string>,
  operation: "SET"
})
type Sticky = ReturnType<typeof makeSticky>

const own = (record: JsonRecord, key: string): unknown => Object.hasOwn(record, key) ? record[key] : undefined

/** The document of one reply over all its rounds; initially empty. */
export class PatchDocument {
  /** The current document. Changed only through `apply` and by appending to the string that a `Grown` change named. */
  root: JsonRecord = {}
  /** Fragments with text were ignored, so the document is not the whole reply. */
  overfull = false
  /** Fragments were ignored, so the last one here is not the upstream's last. */
  private ignored = false
  private sticky = makeSticky()
  private continued = false
  private readonly meter: Meter | undefined

  constructor(meter?: Meter) {
    this.meter = meter
  }

  /** The path and operation of a patch without its own: those of the patch before it. */
  get stickyPath(): string | undefined {
    return this.sticky.path
  }

  get stickyOperation(): string {
    return this.sticky.operation
  }

  /** Applies one patch and reports each change immediately, before the next one of a `BATCH`. */
  apply(patch: JsonRecord, changed: (change: Change) => void): void {
    const bare = (patch["p"] === undefined || patch["p"] === "") && (patch["o"] === undefined || patch["o"] === "")
    if (bare && isRecord(patch["v"]) && Object.hasOwn(patch["v"], "response")) {
      this.root = patch["v"]
      this.boundProperties(this.root)
      this.sticky = makeSticky()
      this.continued = false
      changed({ _tag: "Root", snapshot: true })
      return
    }
    if (this.continued && !bare) this.sticky = makeSticky()
    this.continued = false
    this.run(patch, [], this.sticky, 0, changed)
  }

  /**
   * A continued stream begins. Its first patch starts anew if it has a path or an operation; one that has neither (and is
   * no snapshot) goes on where the stream before it stopped.
   */
  startRound(): void {
    this.continued = true
  }

  /** Removes the elements of a value under `key` that exceed the bounds. */
  private bound(key: string, value: unknown): void {
    if (!Array.isArray(value)) return this.boundProperties(value)
    if (key === "fragments") this.ignored = false
    const most = mostElements(key)
    this.ignore(key, value, most)
    if (value.length > most) value.length = most
    if (key === "fragments") { for (const fragment of value) this.boundProperties(fragment) }
  }

  private boundProperties(value: unknown): void {
    if (!isRecord(value)) return
    for (const key of ["fragments", "search_results", "results", "response"]) {
      if (Object.hasOwn(value, key)) this.bound(key, value[key])
    }
  }

  /** Notes that the elements from index `from` on, for `key`, are not kept. */
  private ignore(key: string, elements: ReadonlyArray<unknown>, from: number): void {
    if (key !== "fragments" || from >= elements.length) return
    this.ignored = true
    for (let i = from; i < elements.length && !this.overfull; i++) {
      this.overfull = fragmentChannel(elements[i]) !== undefined
    }
  }

  private set(path: ReadonlyArray<string>, value: unknown, changed: (change: Change) => void): void {
    if (path.length === 0) {
      if (!isRecord(value)) return
      this.root = value
      this.boundProperties(this.root)
      changed({ _tag: "Root", snapshot: false })
      return
    }
    // A `response` other than an object would make later patches unreadable.
    if (path.length === 1 && path[0] === "response" && !isRecord(value)) return
    const place = this.resolve(path, true)
    if (place === undefined) return
    this.bound(place.key, value)
    if (Array.isArray(place.owner)) {
      const key = path[path.length - 2] ?? ""
      if (place.index >= mostElements(key)) return this.ignore(key, [value], 0)
      const before = place.owner[place.index]
      place.owner[place.index] = value
      changed({ _tag: "Replaced", path: place.path, owner: undefined, before, value })
    } else {
      const before = own(place.owner, place.key)
      place.owner[place.key] = value
      changed({ _tag: "Replaced", path: place.path, owner: place.owner, before, value })
    }
  }

  private append(path: ReadonlyArray<string>, value: unknown, changed: (change: Change) => void): void {
    if (path.length === 0) return
    const place = this.resolve(path, typeof value === "string" || Array.isArray(value))
    if (place === undefined) return
    const before = Array.isArray(place.owner) ? place.owner[place.index] : own(place.owner, place.key)
    if (Array.isArray(before)) {
      const from = before.length
      const most = mostElements(place.key)
      const elements: ReadonlyArray<unknown> = Array.isArray(value) ? value : [value]
      const kept = Math.max(0, Math.min(elements.length, most - before.length))
      for (let i = 0; i < kept; i++) {
        this.boundProperties(elements[i])
        before.push(elements[i])
      }
      this.ignore(place.key, elements, kept)
      changed({ _tag: "Extended", path: place.path, from })
    } else if (Array.isArray(value) && (before === undefined || before === null)) {
      this.set(path, value, changed)
    } else if (typeof value === "string" && (typeof before === "string" || before === undefined || before === null)) {
      if (Array.isArray(place.owner)) return this.set(path, (before ?? "") + value, changed)
      place.owner[place.key] = (before ?? "") + value
      changed({ _tag: "Grown", path: place.path, owner: place.owner, key: place.key, text: value })
    }
  }

  /** Finds the owner of the last segment; `create` adds missing objects, unless the path needs an array. */
  private resolve(path: ReadonlyArray<string>, create: boolean) {
    if (path.length > maxSegments) return undefined
    let resolved = path
    let owner: JsonRecord | Array<unknown> = this.root
    for (let i = 0;; i++) {
      const segment = path[i]!
      const last = i === path.length - 1
      let next: unknown
      if (Array.isArray(owner)) {
        if (this.ignored && segment === "-1" && path[i - 1] === "fragments") return undefined
        const index = indexIn(owner, segment)
        if (index < 0 || (index === owner.length && !last)) return undefined
        if (String(index) !== segment) resolved = resolved.with(i, String(index))
        if (last) return { owner, index, key: segment, path: resolved }
        next = owner[index]
      } else {
        if (segment === "__proto__") return undefined
        if (last) return { owner, index: -1, key: segment, path: resolved }
        next = own(owner, segment)
        if (create && (next === undefined || next === null) && path.slice(i + 1).every(isName)) {
          next = owner[segment] = {}
        }
      }
      if (!Array.isArray(next) && !isRecord(next)) return undefined
      owner = next
    }
  }

  private run(
    patch: JsonRecord,
    base: ReadonlyArray<string>,
    sticky: Sticky,
    depth: number,
    changed: (change: Change) => void
  ): void {
    const ownPath = typeof patch["p"] === "string"
    const ownOperation = typeof patch["o"] === "string" && patch["o"] !== ""
    if (this.meter !== undefined) this.meter.steps += sticky.segments.length + base.length + 1
    if (ownPath) {
      sticky.path = patch["p"] as string
      sticky.segments = split(sticky.path)
      if (this.meter !== undefined) this.meter.steps += Math.min(maxPath, sticky.path.length)
    }
    if (ownOperation) sticky.operation = patch["o"] as string
    const value = patch["v"]
    if (value === undefined) return
    const relative = sticky.segments
    // Older servers write absolute paths inside a batch; no document has a `response` within its `response`.
    const absolute = base.length === 0 || (relative[0] === "response" && base[0] === "response")
    const path = absolute ? relative : base.concat(relative)
    let operation = sticky.operation
    if (!ownOperation) {
      if (isOlderText(path)) operation = "APPEND"
      else if (Array.isArray(value) && path.length === 1 && path[0] === "response") operation = "BATCH"
    }
    if (operation === "BATCH" && Array.isArray(value)) {
      if (depth >= maxBatchDepth) return
      const inner = makeSticky()
      for (const element of value) if (isRecord(element)) this.run(element, path, inner, depth + 1, changed)
    } else if (operation === "APPEND") {
      this.append(path, value, changed)
    } else if (operation === "SET" || operation === "BATCH") {
      // A batch without a list can only mean the value itself.
      this.set(path, value, changed)
    }
  }
}

/** The upper bound of the document's size in characters: it may grow in parts that are never visible, and is kept whole. */
export const mostWeight = 48 * 1024 * 1024

/** Characters received between two measurements, at least; they become rarer as the document grows. */
export const weighedAfter = 16 * 1024 * 1024

/** The characters of a JSON value, with 8 for each of its parts. Counting stops soon after `mostWeight`. */
export const weigh = (value: unknown): number => {
  let weight = 0
  const left: Array<unknown> = [value]
  while (left.length > 0 && weight <= mostWeight) {
    const next = left.pop()
    weight += typeof next === "string" ? next.length + 8 : 8
    if (Array.isArray(next)) { for (const element of next) left.push(element) }
    else if (isRecord(next)) {
      for (const key of Object.keys(next)) {
        weight += key.length
        left.push(next[key])
      }
    }
  }
  return weight
}
