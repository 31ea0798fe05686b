/**
 * The sessions of the embedded upstream, with their turns. Bounded in number and in characters: the oldest idle sessions are
 * dropped first.
 */
import { type PromptTurn, readPrompt } from "../../contracts/session/writeRequest.ts"
import type { Call } from "./Call.ts"
import type { Reply } from "./Reply.ts"
import type { MessageIds } from "./round.ts"

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

export interface Session {
  readonly id: string
  readonly account: string
  title: string
  /** Milliseconds. */
  updatedAt: number
  /** By the id of the reply. */
  readonly turns: Map<number, SessionTurn>
  lastMessage: number
}

/** The approximate size of a turn in characters. */
const weigh = (turn: SessionTurn): number => turn.prompt.length + turn.reply.pieces.length * 64

export class Sessions {
  private readonly all = new Map<string, Session>()
  private readonly byAccount = new Map<string, Set<Session>>()
  private readonly maxSessions: number
  private readonly maxCharacters: number
  private readonly newId: () => string
  private characters = 0
  created = 0
  deleted = 0

  constructor(options: SessionOptions) {
    this.maxSessions = options.maxSessions ?? 10_000
    this.maxCharacters = options.maxCharacters ?? 64 * 1024 * 1024
    this.newId = options.newSessionId ?? (() => `00000000-0000-4000-8000-${String(this.created).padStart(12, "0")}`)
  }

  get open(): number {
    return this.all.size
  }

  create(account: string, now: number): Session {
    this.created++
    const session: Session = {
      id: this.newId(),
      account,
      title: "New chat",
      updatedAt: now,
      turns: new Map(),
      lastMessage: 0
    }
    this.all.set(session.id, session)
    const own = this.byAccount.get(account)
    if (own === undefined) this.byAccount.set(account, new Set([session]))
    else own.add(session)
    this.shrink()
    return session
  }

  private remove(session: Session): void {
    this.all.delete(session.id)
    for (const turn of session.turns.values()) this.characters -= weigh(turn)
    const own = this.byAccount.get(session.account)
    own?.delete(session)
    if (own?.size === 0) this.byAccount.delete(session.account)
  }

  /** Drops the oldest idle sessions. */
  private shrink(): void {
    for (const oldest of this.all.values()) {
      const tooMany = this.all.size > this.maxSessions
      if (!tooMany && this.characters <= this.maxCharacters) return
      const turns = [...oldest.turns.values()]
      const running = turns.some((turn) => turn.running !== undefined)
      if (!running && (tooMany || turns.length > 0)) this.remove(oldest)
    }
  }

  find(account: string, id: string): Session | undefined {
    const session = this.all.get(id)
    return session?.account === account ? session : undefined
  }

  delete(session: Session): void {
    this.deleted++
    this.remove(session)
  }

  deleteAll(account: string): void {
    for (const session of this.byAccount.get(account) ?? []) this.delete(session)
  }

  /** The sessions of an account, the latest first. */
  list(account: string): ReadonlyArray<Session> {
    return [...this.byAccount.get(account) ?? []].sort((a, b) => b.updatedAt - a.updatedAt)
  }

  add(session: Session, turn: SessionTurn, now: number): void {
    if (session.turns.size === 0) {
      const asked = readPrompt(turn.prompt).findLast((each) => each.role === "user")?.text ?? ""
      session.title = Array.from(asked.split("\n")[0] ?? "").slice(0, 40).join("") || "New chat"
    }
    session.turns.set(turn.ids.response, turn)
    session.lastMessage = turn.ids.response
    session.updatedAt = now
    this.characters += weigh(turn)
    this.shrink()
  }
}

/** The turns of a session up to and including the reply `message`. */
export const turnsUpTo = (session: Session, message: number | null): ReadonlyArray<PromptTurn> => {
  const turns: Array<PromptTurn> = []
  let turn = message === null ? undefined : session.turns.get(message)
  while (turn !== undefined) {
    const said = turn.reply.pieces.slice(0, turn.sent)
      .map((piece) => piece._tag === "Say" ? piece.text : "").join("")
    turns.unshift(...readPrompt(turn.prompt), { role: "assistant", text: said })
    turn = turn.parent === null ? undefined : session.turns.get(turn.parent)
  }
  return turns
}
