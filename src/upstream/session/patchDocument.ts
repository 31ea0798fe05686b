/**
 * The document that a session reply's patches build up (upstream-protocol, "The event stream").
 *
 * It is tolerant: a patch that makes no sense on the document changes nothing. It never throws and never leaves the
 * document's own properties. What a patch did is told as changes, so that readers need not compare whole documents.
 */

/** A JSON object as parsed; only own properties count. */
export type JsonRecord = { [key: string]: unknown }

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
  /** The value at `path` was replaced. */
  | { readonly _tag: "Replaced"; readonly path: ReadonlyArray<string> }

/** A patch document; one for each reply, over all its rounds. */
export interface PatchDocument {
  /** The current document. Changed only through `apply` and by appending to the string that a `Grown` change named. */
  readonly root: JsonRecord
  /** Path and operation that a patch without its own takes: those of the patch before it. */
  readonly stickyPath: string | undefined
  readonly stickyOperation: string
  /** Applies one patch and appends what it did to `changes`. */
  readonly apply: (patch: JsonRecord, changes: Array<Change>) => void
  /**
   * A continued stream begins. Its first patch starts anew if it has a path or an operation; one that has neither (and is
   * no snapshot) goes on where the stream before it stopped.
   */
  readonly startRound: () => void
}

const maxSegments = 32
const maxBatchDepth = 8

export const isRecord = (value: unknown): value is JsonRecord =>
  typeof value === "object" && value !== null && !Array.isArray(value)

const split = (path: string): ReadonlyArray<string> => path.split("/", maxSegments + 1).filter((part) => part !== "")

/** True for the two strings of older documents, on which a missing operation is `APPEND`. */
const isOlderText = (path: ReadonlyArray<string>): boolean =>
  path.length === 2 && path[0] === "response" && (path[1] === "content" || path[1] === "thinking_content")

const isIndex = (segment: string): boolean => segment === "-1" || /^\d{1,9}$/.test(segment)

/** A segment that names a property which may be made. */
const isName = (segment: string): boolean => segment !== "__proto__" && !isIndex(segment)

/** The index that a segment names in an array; -1 where it names none. One past the end is the place of a new element. */
const indexIn = (array: ReadonlyArray<unknown>, segment: string): number => {
  if (segment === "-1") return array.length - 1
  const index = isIndex(segment) ? Number(segment) : -1
  return index <= array.length ? index : -1
}

const makeSticky = () => ({ path: undefined as string | undefined, operation: "SET" })
type Sticky = ReturnType<typeof makeSticky>

/** Starts an empty document. */
export const makePatchDocument = (): PatchDocument => {
  let root: JsonRecord = {}
  let sticky = makeSticky()
  let continued = false

  const set = (path: ReadonlyArray<string>, value: unknown, changes: Array<Change>) => {
    if (path.length === 0) {
      if (!isRecord(value)) return
      root = value
      changes.push({ _tag: "Root", snapshot: false })
      return
    }
    // Nothing that follows could be read from a `response` that is no object.
    if (path.length === 1 && path[0] === "response" && !isRecord(value)) return
    const place = resolve(path, true)
    if (place === undefined) return
    if (Array.isArray(place.owner)) place.owner[place.index] = value
    else place.owner[place.key] = value
    changes.push({ _tag: "Replaced", path: place.path })
  }

  const append = (path: ReadonlyArray<string>, value: unknown, changes: Array<Change>) => {
    if (path.length === 0) return
    const place = resolve(path, typeof value === "string" || Array.isArray(value))
    if (place === undefined) return
    const before = Array.isArray(place.owner) ? place.owner[place.index] : own(place.owner, place.key)
    if (Array.isArray(before)) {
      const from = before.length
      if (Array.isArray(value)) { for (const element of value) before.push(element) }
      else before.push(value)
      changes.push({ _tag: "Extended", path: place.path, from })
    } else if (Array.isArray(value) && (before === undefined || before === null)) {
      set(path, value, changes)
    } else if (typeof value === "string" && (typeof before === "string" || before === undefined || before === null)) {
      if (Array.isArray(place.owner)) return set(path, (before ?? "") + value, changes)
      place.owner[place.key] = (before ?? "") + value
      changes.push({ _tag: "Grown", path: place.path, owner: place.owner, key: place.key, text: value })
    }
  }

  /** Finds the owner of the last segment; with `create` it makes objects where nothing is there and no array is meant. */
  const resolve = (path: ReadonlyArray<string>, create: boolean) => {
    if (path.length > maxSegments) return undefined
    const resolved: Array<string> = []
    let owner: JsonRecord | Array<unknown> = root
    for (let i = 0;; i++) {
      const segment = path[i]!
      const last = i === path.length - 1
      let next: unknown
      if (Array.isArray(owner)) {
        const index = indexIn(owner, segment)
        if (index < 0 || (index === owner.length && !last)) return undefined
        resolved.push(String(index))
        if (last) return { owner, index, key: segment, path: resolved }
        next = owner[index]
      } else {
        if (segment === "__proto__") return undefined
        resolved.push(segment)
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

  const own = (record: JsonRecord, key: string): unknown => Object.hasOwn(record, key) ? record[key] : undefined

  const run = (
    patch: JsonRecord,
    base: ReadonlyArray<string>,
    sticky: Sticky,
    depth: number,
    changes: Array<Change>
  ) => {
    const ownPath = typeof patch["p"] === "string"
    const ownOperation = typeof patch["o"] === "string" && patch["o"] !== ""
    if (ownPath) sticky.path = patch["p"] as string
    if (ownOperation) sticky.operation = patch["o"] as string
    const value = patch["v"]
    if (value === undefined) return
    const relative = split(sticky.path ?? "")
    // Older servers write absolute paths inside a batch; no document has a `response` within its `response`.
    const path = relative[0] === "response" && base[0] === "response" ? relative : base.concat(relative)
    let operation = sticky.operation
    if (!ownOperation) {
      if (isOlderText(path)) operation = "APPEND"
      else if (Array.isArray(value) && path.length === 1 && path[0] === "response") operation = "BATCH"
    }
    if (operation === "BATCH" && Array.isArray(value)) {
      if (depth >= maxBatchDepth) return
      const inner = makeSticky()
      for (const element of value) if (isRecord(element)) run(element, path, inner, depth + 1, changes)
    } else if (operation === "APPEND") {
      append(path, value, changes)
    } else if (operation === "SET" || operation === "BATCH") {
      // A batch without a list can only mean the value itself.
      set(path, value, changes)
    }
  }

  return {
    get root() {
      return root
    },
    get stickyPath() {
      return sticky.path
    },
    get stickyOperation() {
      return sticky.operation
    },
    apply(patch, changes) {
      const bare = (patch["p"] === undefined || patch["p"] === "") && (patch["o"] === undefined || patch["o"] === "")
      if (bare && isRecord(patch["v"]) && Object.hasOwn(patch["v"], "response")) {
        root = patch["v"]
        sticky = makeSticky()
        continued = false
        changes.push({ _tag: "Root", snapshot: true })
        return
      }
      if (continued && !bare) sticky = makeSticky()
      continued = false
      run(patch, [], sticky, 0, changes)
    },
    startRound() {
      continued = true
    }
  }
}
