/**
 * The plain form of a request to a Responses server: the whole conversation without what only its maker can read or find, which are
 * `previous_response_id`, references, ids of items and seals (`encrypted_content`).
 *
 * Words, calls and results stay. Where some seals can be opened, the items that follow them keep their ids, because a server pairs thinking
 * with what follows it.
 */
import type { Json, JsonFields } from "../../domain/json.ts"
import { sealedLists, sealOf } from "../../domain/makers.ts"
import { isFields } from "../../domain/replyExtras.ts"

/** What of a request the server can read. */
export interface PlainOptions {
  /** True for a seal that the server cannot open. Without it, no seal can be opened. */
  readonly isForeign: ((seal: string) => boolean) | undefined
  /** The server reads thinking that has no seal. */
  readonly readsThinking: boolean
}

/** What was left out of an item of `input`. */
export interface LeftOut {
  /** The item's place in `input`. */
  readonly index: number
  /** The path within the item, such as `.encrypted_content`; empty for the item itself. */
  readonly path: string
}

export interface PlainForm {
  readonly fields: JsonFields
  readonly left: ReadonlyArray<LeftOut>
}

const sealField = "encrypted_content"

const unreadable = "A part of this conversation is sealed by another provider and cannot be read here."

const unreadableMessage: JsonFields = { type: "message", role: "developer", content: unreadable }

/** Items whose id the contract requires: they get another one. */
const identified: ReadonlySet<Json | undefined> = new Set([
  "code_interpreter_call",
  "computer_call",
  "file_search_call",
  "image_generation_call",
  "local_shell_call",
  "mcp_approval_request",
  "mcp_call",
  "mcp_list_tools",
  "program",
  "program_output",
  "reasoning",
  "web_search_call"
])

/** An id of the same kind that no server knows; the same one for the same id. */
const renamed = (id: string): string => {
  const kind = id.slice(0, id.indexOf("_") + 1)
  return `${kind}0${Array.from(id.slice(kind.length)).toReversed().join("").slice(0, 47)}`
}

/** An item without its id. The id of a local shell's output names its call. */
const unnamed = (item: JsonFields): JsonFields => {
  const { approval_request_id: approved, id, type } = item
  if (typeof approved === "string") return { ...item, approval_request_id: renamed(approved) }
  if (id === undefined || type === "local_shell_call_output") return item
  if (identified.has(type) && typeof id === "string") return { ...item, id: renamed(id) }
  const { id: _, ...others } = item as JsonFields & { readonly id?: Json }
  return others
}

const withoutSeal = (fields: JsonFields): JsonFields => {
  const { [sealField]: _, ...others } = fields as JsonFields & { readonly [sealField]?: Json }
  return others
}

const isFilled = (value: Json | undefined): boolean =>
  typeof value === "string" ? value !== "" : Array.isArray(value) && value.length > 0

class Plain {
  readonly left: Array<LeftOut> = []
  readonly items: Array<Json> = []
  isChanged = false
  /** What follows the last seal of the reply, which the server can open. */
  #isOwn = false
  readonly #isForeign: (seal: string) => boolean
  readonly #readsThinking: boolean

  constructor({ isForeign = () => true, readsThinking }: PlainOptions) {
    this.#isForeign = isForeign
    this.#readsThinking = readsThinking
  }

  add(item: Json, index: number): void {
    const kept = isFields(item) ? this.#kept(item, index) : item
    if (kept !== item) this.isChanged = true
    if (kept !== undefined) this.items.push(kept)
  }

  #leave(index: number, path: string): void {
    this.left.push({ index, path })
  }

  #kept(item: JsonFields, index: number): JsonFields | undefined {
    if (item["type"] === "item_reference") {
      this.#leave(index, "")
      return undefined
    }
    if (item["role"] === "user") this.#isOwn = false
    const seal = sealOf(item)
    if (seal !== undefined) this.#isOwn = !this.#isForeign(seal)
    if (item["type"] === "reasoning") return this.#thinking(item, index, seal)
    if (seal !== undefined && !this.#isOwn) {
      this.#leave(index, `.${sealField}`)
      return isFilled(item["content"]) ? unnamed(withoutSeal(item)) : unreadableMessage
    }
    const readable = sealedLists.reduce<JsonFields | undefined>(
      (item, name) => item && this.#parts(item, name, index),
      item
    )
    return readable === undefined || this.#isOwn ? readable ?? unreadableMessage : unnamed(readable)
  }

  /** Thinking without a seal belongs to what was before it. */
  #thinking(item: JsonFields, index: number, seal: string | undefined): JsonFields | undefined {
    if (this.#isOwn) return item
    const isRead = this.#readsThinking && isFilled(item["content"])
    if (seal !== undefined) this.#leave(index, `.${sealField}`)
    else if (!isRead) this.#leave(index, "")
    return isRead ? unnamed(withoutSeal(item)) : undefined
  }

  /** The item without the sealed parts of a list; `undefined` if they are all that it has. A result stays, since its call has to have one. */
  #parts(item: JsonFields, name: typeof sealedLists[number], index: number): JsonFields | undefined {
    const parts = item[name]
    if (!Array.isArray(parts)) return item
    const readable = (parts as ReadonlyArray<Json>).filter((part, i) => {
      const seal = sealOf(part)
      if (seal === undefined || !this.#isForeign(seal)) return true
      this.#leave(index, `.${name}[${i}].${sealField}`)
      return false
    })
    if (readable.length === parts.length) return item
    if (readable.length > 0) return { ...item, [name]: readable }
    return typeof item["call_id"] === "string" ? { ...item, [name]: unreadable } : undefined
  }
}

/** The plain form of a request that has its whole conversation in `input`; `undefined` if that is the request itself. */
export const plainForm = (fields: JsonFields, options: PlainOptions): PlainForm | undefined => {
  const { previous_response_id: previous, ...rest } = fields as JsonFields & { readonly previous_response_id?: Json }
  const isContinued = (previous ?? null) !== null
  const input = fields["input"]
  if (!Array.isArray(input)) return isContinued ? { fields: rest, left: [] } : undefined
  const plain = new Plain(options)
  for (const [index, item] of (input as ReadonlyArray<Json>).entries()) plain.add(item, index)
  if (!plain.isChanged && !isContinued) return undefined
  return { fields: { ...rest, input: plain.items }, left: plain.left }
}
