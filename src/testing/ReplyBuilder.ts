/**
 * Puts a reply together, piece by piece; scripts and default answers write to it.
 */
import type { Json } from "../domain/Conversation.ts"
import { type Chunking, cutText } from "./pieces.ts"
import type { Cuts, Piece, Reply, ScriptedFault, UsageForm } from "./Reply.ts"

/** One hit of a search, as the protocol lists it. */
export interface SearchResult {
  readonly url: string
  readonly title: string
  readonly snippet: string
  readonly cite_index: number
}

/** Defaults of the server that a script may change. */
export interface ReplySettings {
  readonly pace: number | undefined
  readonly burst: number
}

/** What the caller asked for. */
export interface ReplyFlags {
  readonly thinking: boolean
  readonly search: boolean
}

/**
 * The most that a reply may hold. It is rendered at once, in the gateway's own process where the upstream is embedded.
 */
const maxPieces = 200_000
const maxCharacters = 32 * 1024 * 1024

/** The most pieces that a text of this length may be cut into; of words it is a guess. */
const mostPieces = (length: number, chunking: Chunking): number => {
  switch (chunking._tag) {
    case "Whole":
      return 1
    case "Words":
      return length / 4
    case "Characters":
    case "Units":
      return length / chunking.count
  }
}

export class ReplyBuilder {
  readonly flags: ReplyFlags
  chunking: Chunking = { _tag: "Words" }
  shape: Reply["shape"] = "new"
  usage: UsageForm = { _tag: "Computed", form: "accumulated" }
  cuts: Cuts = { at: new Set(), every: undefined, restart: "snapshot", status: "INCOMPLETE" }
  pace: number | undefined
  burst: number
  readonly faults: Array<ScriptedFault> = []
  /** More was to be said than a reply may hold; it was left out. */
  overflown = false
  private readonly pieces: Array<Piece> = []
  private characters = 0
  private silence = 0

  constructor(flags: ReplyFlags, settings: ReplySettings) {
    this.flags = flags
    this.pace = settings.pace
    this.burst = settings.burst
  }

  /** Pieces so far. */
  get length(): number {
    return this.pieces.length
  }

  private push(piece: Piece): void {
    this.pieces.push(this.silence === 0 ? piece : { ...piece, wait: this.silence })
    this.silence = 0
  }

  /** Silence before the next piece. */
  wait(millis: number): void {
    this.silence += millis
  }

  private fits(pieces: number, characters: number): boolean {
    const fits = this.pieces.length + pieces <= maxPieces && this.characters + characters <= maxCharacters
    if (fits) this.characters += characters
    else this.overflown = true
    return fits
  }

  private write(tag: "Say" | "Think", text: string | ReadonlyArray<string>): void {
    const fits = typeof text === "string"
      ? this.fits(mostPieces(text.length, this.chunking), text.length)
      : this.fits(text.length, text.reduce((sum, piece) => sum + piece.length, 0))
    if (!fits) return
    const pieces = typeof text === "string" ? cutText(text, this.chunking) : text
    for (const piece of pieces) this.push({ _tag: tag, text: piece, wait: 0 })
  }

  /** Reply text, cut as the script asks, or already in pieces. */
  say(text: string | ReadonlyArray<string>): void {
    this.write("Say", text)
  }

  /** Reasoning; left out where the caller did not ask for any. */
  think(text: string | ReadonlyArray<string>): void {
    if (this.flags.thinking) this.write("Think", text)
  }

  /** The same piece of reply text so many times. */
  repeat(count: number, text: string): void {
    if (!this.fits(count, count * text.length)) return
    for (let i = 0; i < count; i++) this.push({ _tag: "Say", text, wait: 0 })
  }

  /** A whole fragment of another type. */
  fragment(type: string, fields: { readonly [key: string]: Json }): void {
    this.push({ _tag: "Fragment", type, fields, wait: 0 })
  }

  /** A search and the page that was opened; the older document knows a plain list of results only. */
  search(query: string, results: ReadonlyArray<SearchResult>): void {
    const list = results.map((result): { readonly [key: string]: Json } => ({ ...result }))
    if (this.shape === "old") {
      this.push({ _tag: "Set", path: "response/search_results", value: list, wait: 0 })
      return
    }
    this.fragment("TOOL_SEARCH", { queries: [{ query }], results: list })
    if (list[0] !== undefined) this.fragment("TOOL_OPEN", { result: list[0] })
  }

  /** Forgets what has been said, keeps how it is to be sent. */
  clear(): void {
    this.pieces.length = 0
    this.characters = 0
  }

  build(promptTokens: number): Reply {
    return {
      pieces: this.pieces,
      shape: this.shape,
      usage: this.usage,
      cuts: this.cuts,
      pace: this.pace,
      burst: this.burst,
      faults: this.faults,
      thinking: this.flags.thinking,
      search: this.flags.search,
      promptTokens
    }
  }
}
