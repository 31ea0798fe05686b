/**
 * A reply of the scripted provider before it becomes events: its pieces, and how they are sent. `ReplyBuilder` puts one
 * together.
 *
 * A piece is the content of one event; places within a reply (cuts, faults, progress) are counted in pieces.
 */
import type { CallName } from "../../contracts/session/readRequest.ts"
import type { Flags, Fragment } from "../../contracts/session/writeReply.ts"
import type { Json } from "../../domain/json.ts"
import { cutWords, searchParts } from "../../upstream/embedded/defaultAnswer.ts"

/** A piece of reasoning or of reply text. */
interface TextPiece {
  readonly _tag: "Think" | "Say"
  readonly text: string
  /** Milliseconds of silence before this piece, in addition to the pace. */
  readonly wait: number
}

/** A whole fragment of another type: `TOOL_SEARCH`, `TOOL_OPEN`, `TIP`, or one that no driver knows. */
interface FragmentPiece {
  readonly _tag: "Fragment"
  readonly type: string
  readonly fields: { readonly [key: string]: Json }
  readonly wait: number
}

/** Sets a value somewhere in the document. */
interface SetPiece {
  readonly _tag: "Set"
  readonly path: string
  readonly value: Json
  readonly wait: number
}

export type Piece = TextPiece | FragmentPiece | SetPiece

/**
 * How token counts are sent: `accumulated_token_usage` at the end (`accumulated`) or after every piece (`running`),
 * `token_usage` as a number (`total`) or as an object (`parts`), both, a given value, only the initial zero, or not at all.
 */
export type UsageForm =
  | { readonly _tag: "Computed"; readonly form: "accumulated" | "running" | "total" | "parts" | "both" }
  | { readonly _tag: "Accumulated"; readonly value: number }
  | { readonly _tag: "Given"; readonly value: Json }
  | { readonly _tag: "Zero" }
  | { readonly _tag: "None" }

/** How a continued stream starts. */
export type Restart = "snapshot" | "empty" | "none"

/** Places at which the upstream's output limit cuts the reply: `at` counts pieces; `every` cuts repeatedly. */
export interface Cuts {
  readonly at: ReadonlySet<number>
  readonly every: number | undefined
  readonly restart: Restart
  readonly status: "INCOMPLETE" | "AUTO_CONTINUE"
}

/** A fault to apply, with its options; `faults.ts` has the names and each name's defaults. */
export interface FaultSpec {
  readonly name: string
  /** Pieces of the round that leave before it happens. */
  readonly after?: number | undefined
  /** HTTP status of the reply. */
  readonly status?: number | undefined
  /** Seconds of a `Retry-After` header. */
  readonly retryAfter?: number | undefined
  /** Envelope `code`. */
  readonly code?: number | undefined
  /** Envelope `biz_code`. */
  readonly bizCode?: number | undefined
  /** The upstream's message. */
  readonly message?: string | undefined
  /** `finish_reason` of a hint. */
  readonly reason?: string | undefined
  readonly millis?: number | undefined
  /** Size of a long line. */
  readonly bytes?: number | undefined
}

/** A fault of a script. Without `times` it happens each time. */
export interface ScriptedFault extends FaultSpec {
  readonly call: CallName
  readonly times: number | undefined
}

export interface Reply {
  readonly pieces: ReadonlyArray<Piece>
  readonly shape: "new" | "old"
  readonly usage: UsageForm
  readonly cuts: Cuts
  /** Milliseconds before each piece; `undefined` sends without delay. */
  readonly pace: number | undefined
  /** Events in one write. */
  readonly burst: number
  readonly faults: ReadonlyArray<ScriptedFault>
  readonly thinking: boolean
  readonly search: boolean
  readonly promptTokens: number
}

/** The number of pieces after which the round that starts at `from` is cut; `undefined` if it runs to the end. */
export const nextCut = (reply: Reply, from: number): number | undefined => {
  const length = reply.pieces.length
  let cut = reply.cuts.every === undefined ? length : from + reply.cuts.every
  for (const at of reply.cuts.at) if (at > from && at < cut) cut = at
  return cut < length ? cut : undefined
}

/** How text is cut into pieces: by word (at most 12 characters, with the blanks before it), by characters, by UTF-16 units (so also inside surrogate pairs), or not at all. */
type Chunking =
  | { readonly _tag: "Words" }
  | { readonly _tag: "Characters"; readonly count: number }
  | { readonly _tag: "Units"; readonly count: number }
  | { readonly _tag: "Whole" }

/** Cuts `text` into pieces whose concatenation is `text`; the empty string has no pieces. */
const cutText = (text: string, chunking: Chunking): ReadonlyArray<string> => {
  switch (chunking._tag) {
    case "Words":
      return cutWords({ type: "RESPONSE", content: text }).map(({ content }) => String(content))
    case "Whole":
      return text === "" ? [] : [text]
    case "Characters":
    case "Units": {
      const units = chunking._tag === "Units" ? text.split("") : Array.from(text)
      const pieces: Array<string> = []
      for (let i = 0; i < units.length; i += chunking.count) pieces.push(units.slice(i, i + chunking.count).join(""))
      return pieces
    }
  }
}

/** The upper bound of the pieces that a text of this length is cut into; an estimate for words. */
const mostPieces = (length: number, chunking: Chunking): number =>
  chunking._tag === "Whole" ? 1 : length / (chunking._tag === "Words" ? 4 : chunking.count)

/** Defaults that a script may change. */
export interface ReplySettings {
  readonly pace: number | undefined
  readonly burst: number
}

/** The bounds of a reply, which is rendered immediately in the gateway's own process. */
const maxPieces = 200_000
const maxCharacters = 32 * 1024 * 1024

/** Scripts and default answers write to it, piece by piece. */
export class ReplyBuilder {
  readonly flags: Flags
  chunking: Chunking = { _tag: "Words" }
  shape: Reply["shape"] = "new"
  usage: UsageForm = { _tag: "Computed", form: "accumulated" }
  cuts: Cuts = { at: new Set(), every: undefined, restart: "snapshot", status: "INCOMPLETE" }
  pace: number | undefined
  burst: number
  readonly faults: Array<ScriptedFault> = []
  /** Text was left out because the reply reached its bounds. */
  overflown = false
  private readonly pieces: Array<Piece> = []
  private characters = 0
  private silence = 0

  constructor(flags: Flags, settings: ReplySettings) {
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

  /** Silence in milliseconds before the next piece. */
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

  /** Reasoning; ignored unless the caller asked for it. */
  think(text: string | ReadonlyArray<string>): void {
    if (this.flags.thinking) this.write("Think", text)
  }

  /** The same piece of reply text, `count` times. */
  repeat(count: number, text: string): void {
    if (!this.fits(count, count * text.length)) return
    for (let i = 0; i < count; i++) this.push({ _tag: "Say", text, wait: 0 })
  }

  /** A whole fragment of another type. */
  fragment(type: string, fields: { readonly [key: string]: Json }): void {
    this.push({ _tag: "Fragment", type, fields, wait: 0 })
  }

  /** A part as it stands. The older document has only a plain list of search results. */
  part({ type, ...fields }: Fragment): void {
    if (type === "THINK") this.think(String(fields["content"]))
    else if (type === "RESPONSE") this.say(String(fields["content"]))
    else if (this.shape === "new") this.fragment(type, fields)
    else if (type === "TOOL_SEARCH") {
      this.push({ _tag: "Set", path: "response/search_results", value: fields["results"] ?? [], wait: 0 })
    }
  }

  /** A search with `count` made-up results, and the page that was opened. */
  search(count: number): void {
    for (const part of searchParts("the question", "the question", count)) this.part(part)
  }

  /** Drops the pieces and keeps how the reply is sent. */
  clear(): void {
    this.pieces.length = 0
    this.characters = 0
  }

  build(promptTokens: number): Reply {
    const { burst, cuts, faults, pace, pieces, shape, usage } = this
    const { search, thinking } = this.flags
    return { pieces, shape, usage, cuts, pace, burst, faults, thinking, search, promptTokens }
  }
}
