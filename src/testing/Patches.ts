/**
 * Writes patches upon the reply's document as events. What a patch shares with the one before it (`p`, `o`) is left out, so
 * that a reader has to keep it.
 */
import type { Json } from "../domain/Conversation.ts"
import type { EventItem } from "./Draft.ts"

export type JsonObject = { [key: string]: Json }

export class Patches {
  readonly items: Array<EventItem> = []
  /** Pieces that have left with the items so far. */
  sent: number
  private path: string | undefined = undefined
  private operation: string | undefined = undefined

  constructor(sent: number) {
    this.sent = sent
  }

  private push(event: string | undefined, value: Json, wait: number): void {
    this.items.push({ _tag: "Event", event, data: JSON.stringify(value), sent: this.sent, wait })
  }

  /** An event that is no patch. */
  named(event: string, value: Json): void {
    this.push(event, value, 0)
  }

  /** Replaces the document. */
  snapshot(response: JsonObject, wait: number): void {
    this.push(undefined, { v: { response } }, wait)
    this.path = undefined
    this.operation = "SET"
  }

  /** A patch; in a stream that has brought no snapshot the first one leaves nothing out. */
  patch(path: string, operation: "SET" | "APPEND" | "BATCH", value: Json, wait = 0): void {
    const patch: JsonObject = {}
    if (path !== this.path) patch["p"] = path
    if (operation !== this.operation) patch["o"] = operation
    patch["v"] = value
    this.path = path
    this.operation = operation
    this.push(undefined, patch, wait)
  }

  /** A patch as older servers write it: its operation goes without saying. */
  bare(path: string, value: Json, wait = 0): void {
    const patch: JsonObject = path === this.path ? {} : { p: path }
    patch["v"] = value
    this.path = path
    this.push(undefined, patch, wait)
  }
}
