/**
 * The reply's document as it grows, in the new shape (`fragments`) and in the older one (two strings), and the patches that
 * make it grow.
 */
import type { Json } from "../../domain/json.ts"
import type { Piece } from "./Reply.ts"
import type { EventItem } from "./wire.ts"

export type JsonObject = { [key: string]: Json }

/**
 * Writes patches of the reply's document as events. A path or operation that a patch shares with the one before it is omitted,
 * so a reader has to keep both.
 */
export class Patches {
  readonly items: Array<EventItem> = []
  /** The number of pieces that have left with the items so far. */
  sent: number
  private path: string | undefined = undefined
  private operation: string | undefined = undefined

  constructor(sent: number) {
    this.sent = sent
  }

  private push(event: string | undefined, value: Json, wait: number): void {
    this.items.push({ _tag: "Event", event, data: JSON.stringify(value), sent: this.sent, wait })
  }

  /** An event other than a patch. */
  named(event: string, value: Json): void {
    this.push(event, value, 0)
  }

  /** Replaces the document. */
  snapshot(response: JsonObject, wait: number): void {
    this.push(undefined, { v: { response } }, wait)
    this.path = undefined
    this.operation = "SET"
  }

  /** A patch; the first one of a stream without a snapshot is complete. */
  patch(path: string, operation: "SET" | "APPEND" | "BATCH", value: Json, wait = 0): void {
    const patch: JsonObject = {}
    if (path !== this.path) patch["p"] = path
    if (operation !== this.operation) patch["o"] = operation
    patch["v"] = value
    this.path = path
    this.operation = operation
    this.push(undefined, patch, wait)
  }

  /** A patch as older servers write it, without an operation. */
  bare(path: string, value: Json, wait = 0): void {
    const patch: JsonObject = path === this.path ? {} : { p: path }
    patch["v"] = value
    this.path = path
    this.push(undefined, patch, wait)
  }
}

/** Fields of `response` with the values to set. */
export type Fields = ReadonlyArray<readonly [name: string, value: Json]>

interface ReplyDocument {
  /** Adds a piece that the reader has already, or gets from a snapshot. */
  absorb(piece: Piece): void
  /** Starts over with an empty document. */
  restart(): void
  /** The fields of a snapshot. */
  body(): JsonObject
  /** Adds a piece and writes its patch. */
  grow(piece: Piece, patches: Patches): void
  /** Sets fields within the reply. */
  set(fields: Fields, patches: Patches): void
  /** Writes the token counts and the final status. */
  finish(status: string, fields: Fields, patches: Patches): void
}

const fieldOf = (path: string): string => path.replace(/^response\//, "")

export class FragmentDocument implements ReplyDocument {
  private fragments: Array<JsonObject> = []
  private fields: JsonObject = {}
  private readonly references: Array<Json> = []
  /** Pieces of reasoning in the open fragment; each counts as a tenth of a second. */
  private thoughts = 0

  private get last(): JsonObject | undefined {
    return this.fragments.at(-1)
  }

  private fragmentOf(piece: Exclude<Piece, { _tag: "Set" }>): JsonObject {
    const id = this.fragments.length + 1
    switch (piece._tag) {
      case "Think":
        return { id, type: "THINK", content: piece.text, elapsed_secs: null }
      case "Say":
        return { id, type: "RESPONSE", content: piece.text, references: [...this.references] }
      case "Fragment":
        return { id, type: piece.type, ...piece.fields }
    }
  }

  private open(piece: Exclude<Piece, { _tag: "Set" }>): JsonObject {
    const fragment = this.fragmentOf(piece)
    const type = fragment["type"]!
    if (type === "TOOL_SEARCH" || type === "TOOL_OPEN") this.references.push({ id: fragment["id"]!, type })
    this.thoughts = piece._tag === "Think" ? 1 : 0
    this.fragments.push(fragment)
    return fragment
  }

  private growing(piece: Piece): piece is Extract<Piece, { _tag: "Think" | "Say" }> {
    return (piece._tag === "Think" && this.last?.["type"] === "THINK") ||
      (piece._tag === "Say" && this.last?.["type"] === "RESPONSE")
  }

  private append(text: string): void {
    const fragment = this.last!
    fragment["content"] = `${String(fragment["content"])}${text}`
    this.thoughts++
  }

  private closeThought(patches: Patches): void {
    if (this.last?.["type"] === "THINK") {
      patches.patch("response/fragments/-1/elapsed_secs", "SET", this.thoughts / 10)
    }
  }

  absorb(piece: Piece): void {
    if (piece._tag === "Set") this.fields[fieldOf(piece.path)] = piece.value
    else if (this.growing(piece)) this.append(piece.text)
    else this.open(piece)
  }

  restart(): void {
    this.fragments = []
    this.fields = {}
  }

  body(): JsonObject {
    return { fragments: this.fragments, ...this.fields }
  }

  grow(piece: Piece, patches: Patches): void {
    if (piece._tag === "Set") {
      patches.sent++
      patches.patch(piece.path, "SET", piece.value, piece.wait)
    } else if (this.growing(piece)) {
      this.thoughts++
      patches.sent++
      patches.patch("response/fragments/-1/content", "APPEND", piece.text, piece.wait)
    } else {
      this.closeThought(patches)
      const fragment = this.open(piece)
      patches.sent++
      patches.patch("response/fragments", "APPEND", [fragment], piece.wait)
    }
  }

  set(fields: Fields, patches: Patches): void {
    for (const [name, value] of fields) patches.patch(`response/${name}`, "SET", value)
  }

  finish(status: string, fields: Fields, patches: Patches): void {
    this.closeThought(patches)
    patches.patch("response", "BATCH", [
      ...fields.map(([p, v]) => ({ p, v })),
      { p: "quasi_status", v: status }
    ])
    patches.patch("response/status", "SET", status)
  }
}

export class StringDocument implements ReplyDocument {
  private thinking = ""
  private content = ""
  private fields: JsonObject = {}

  absorb(piece: Piece): void {
    if (piece._tag === "Think") this.thinking += piece.text
    else if (piece._tag === "Say") this.content += piece.text
    else if (piece._tag === "Set") this.fields[fieldOf(piece.path)] = piece.value
  }

  restart(): void {
    this.thinking = ""
    this.content = ""
    this.fields = {}
  }

  body(): JsonObject {
    return { thinking_content: this.thinking, content: this.content, ...this.fields }
  }

  grow(piece: Piece, patches: Patches): void {
    patches.sent++
    if (piece._tag === "Think") patches.bare("response/thinking_content", piece.text, piece.wait)
    else if (piece._tag === "Say") patches.bare("response/content", piece.text, piece.wait)
    else if (piece._tag === "Set") patches.bare(piece.path, piece.value, piece.wait)
  }

  set(fields: Fields, patches: Patches): void {
    for (const [name, value] of fields) patches.bare(`response/${name}`, value)
  }

  /** In the older shape a list without an operation is a batch, and paths within it may be absolute. */
  finish(status: string, fields: Fields, patches: Patches): void {
    patches.bare("response", [
      ...fields.map(([p, v]) => ({ p, o: "SET", v })),
      { p: "response/quasi_status", v: status }
    ])
    patches.bare("response/status", status)
  }
}
