/**
 * The sessions of the scripted provider with their turns, bounded in number and in characters: the oldest idle sessions are dropped first.
 */
import type { MessageIds } from "../../contracts/session/writeReply.ts"
import { type PromptTurn, readPrompt } from "../../contracts/session/writeRequest.ts"
import { type Session, Sessions } from "../../upstream/embedded/Sessions.ts"
import type { Call } from "./Call.ts"
import type { Reply } from "./Reply.ts"

export interface SessionOptions {
  /** Sessions that are kept; the oldest are dropped first, never one with a running reply (10,000). */
  readonly maxSessions?: number | undefined
  /** Characters of the turns of all sessions, where a piece of a reply counts as 64 (64 Mi). */
  readonly maxCharacters?: number | undefined
  /** Makes session ids; by default they are counted. */
  readonly newSessionId?: (() => string) | undefined
}

/** A prompt and its reply. */
export interface SessionTurn {
  readonly ids: MessageIds
  /** The id of the reply that this turn follows. */
  readonly parent: number | null
  readonly prompt: string
  readonly reply: Reply
  /** The number of pieces of the reply that have left. */
  sent: number
  /** The call that is sending the reply. */
  running: Call | undefined
}

/** The approximate size of a turn in characters. */
const weigh = (turn: SessionTurn): number => turn.prompt.length + turn.reply.pieces.length * 64

export class Turns extends Sessions {
  /** By session, and by the id of the reply. */
  private readonly turns = new Map<Session, Map<number, SessionTurn>>()
  private readonly maxCharacters: number
  private characters = 0
  created = 0

  constructor({ maxCharacters = 64 * 1024 * 1024, maxSessions, newSessionId }: SessionOptions) {
    super(newSessionId ?? (() => `00000000-0000-4000-8000-${String(this.created).padStart(12, "0")}`), maxSessions)
    this.maxCharacters = maxCharacters
  }

  get open(): number {
    return this.all.size
  }

  protected override isIdle(session: Session): boolean {
    return ![...this.turns.get(session)?.values() ?? []].some(({ running }) => running !== undefined)
  }

  override create(account: string, now: number): Session {
    this.created++
    return super.create(account, now)
  }

  override delete(session: Session): void {
    super.delete(session)
    for (const turn of this.turns.get(session)?.values() ?? []) this.characters -= weigh(turn)
    this.turns.delete(session)
  }

  turn(session: Session, message: number): SessionTurn | undefined {
    return this.turns.get(session)?.get(message)
  }

  /** The ids of the next turn. */
  next(session: Session): MessageIds {
    const last = [...this.turns.get(session)?.keys() ?? []].at(-1) ?? 0
    return { request: last + 1, response: last + 2 }
  }

  add(session: Session, turn: SessionTurn): void {
    const turns = this.turns.get(session) ?? new Map<number, SessionTurn>()
    this.turns.set(session, turns.set(turn.ids.response, turn))
    this.characters += weigh(turn)
    for (const oldest of this.turns.keys()) {
      if (this.characters <= this.maxCharacters) return
      if (this.isIdle(oldest)) this.delete(oldest)
    }
  }

  /** The turns of a session up to and including the reply `message`. */
  upTo(session: Session, message: number | null): ReadonlyArray<PromptTurn> {
    const turn = message === null ? undefined : this.turn(session, message)
    if (turn === undefined) return []
    const said = turn.reply.pieces.slice(0, turn.sent).map((piece) => piece._tag === "Say" ? piece.text : "").join("")
    return [...this.upTo(session, turn.parent), ...readPrompt(turn.prompt), { role: "assistant", text: said }]
  }
}
