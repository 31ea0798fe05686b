/**
 * The reply's document as it grows, in the new shape (`fragments`) and in the older one (two strings), and the events of its patches.
 */
import {
  type Fragment,
  Fragments,
  type JsonObject,
  type Patch,
  PatchWriter
} from "../../contracts/session/writeReply.ts"
import type { Json } from "../../domain/json.ts"
import type { Piece } from "./Reply.ts"
import type { EventItem } from "./wire.ts"

/** Writes the patches of a reply's document as events. */
export class Patches {
  readonly items: Array<EventItem> = []
  /** The number of pieces that have left with the items so far. */
  sent: number
  private readonly writer = new PatchWriter()

  constructor(sent: number) {
    this.sent = sent
  }

  private push(event: string | undefined, data: string, wait: number): void {
    this.items.push({ _tag: "Event", event, data, sent: this.sent, wait })
  }

  /** An event other than a patch. */
  named(event: string, value: Json): void {
    this.push(event, JSON.stringify(value), 0)
  }

  /** Replaces the document. */
  snapshot(response: JsonObject, wait: number): void {
    this.push(undefined, this.writer.snapshot(response), wait)
  }

  write(patch: Patch, wait = 0): void {
    this.push(undefined, this.writer.write(patch), wait)
  }
}

interface ReplyDocument {
  /** Starts over with an empty document. */
  restart(): void
  /** The fields of a snapshot. */
  body(): JsonObject
  /** Adds a piece; its own patch is the last one. */
  add(piece: Piece): ReadonlyArray<Patch>
  /** The patch of a field within the reply. */
  set(path: string, value: Json): Patch
  /** The patches of the token counts and the final status. */
  finish(status: string, fields: JsonObject): ReadonlyArray<Patch>
}

const fieldOf = (path: string): string => path.replace(/^response\//, "")

const fragmentOf = (piece: Exclude<Piece, { _tag: "Set" }>): Fragment => {
  switch (piece._tag) {
    case "Think":
      return { type: "THINK", content: piece.text }
    case "Say":
      return { type: "RESPONSE", content: piece.text }
    case "Fragment":
      return { type: piece.type, ...piece.fields }
  }
}

export class FragmentDocument extends Fragments implements ReplyDocument {
  private fields: JsonObject = {}

  restart(): void {
    this.fragments = []
    this.fields = {}
  }

  override body(): JsonObject {
    return { ...super.body(), ...this.fields }
  }

  add(piece: Piece): ReadonlyArray<Patch> {
    if (piece._tag !== "Set") return this.grow(fragmentOf(piece))
    this.fields[fieldOf(piece.path)] = piece.value
    return [[piece.path, "SET", piece.value]]
  }

  set(path: string, value: Json): Patch {
    return [path, "SET", value]
  }
}

export class StringDocument implements ReplyDocument {
  private fields: JsonObject = { thinking_content: "", content: "" }

  restart(): void {
    this.fields = { thinking_content: "", content: "" }
  }

  body(): JsonObject {
    return this.fields
  }

  add(piece: Piece): ReadonlyArray<Patch> {
    if (piece._tag === "Fragment") return []
    if (piece._tag === "Set") {
      this.fields[fieldOf(piece.path)] = piece.value
      return [this.set(piece.path, piece.value)]
    }
    const field = piece._tag === "Think" ? "thinking_content" : "content"
    this.fields[field] = `${String(this.fields[field])}${piece.text}`
    return [this.set(`response/${field}`, piece.text)]
  }

  set(path: string, value: Json): Patch {
    return [path, undefined, value]
  }

  /** In the older shape a list without an operation is a batch, and paths within it may be absolute. */
  finish(status: string, fields: JsonObject): ReadonlyArray<Patch> {
    return [
      this.set("response", [
        ...Object.entries(fields).map(([p, v]) => ({ p, o: "SET", v })),
        { p: "response/quasi_status", v: status }
      ]),
      this.set("response/status", status)
    ]
  }
}
