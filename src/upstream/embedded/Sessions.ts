/**
 * Sessions of accounts, bounded in number: the oldest are dropped first.
 */
import { readPrompt } from "../../contracts/session/writeRequest.ts"

export interface Session {
  readonly id: string
  readonly account: string
  title: string
  /** Milliseconds. */
  updatedAt: number
}

const untitled = "New chat"

export class Sessions {
  protected readonly all = new Map<string, Session>()
  private readonly newId: () => string
  private readonly most: number

  /** `newId` makes ids; `most` is the number of sessions that are kept. */
  constructor(newId: () => string, most = 10_000) {
    this.newId = newId
    this.most = most
  }

  /** Whether a session may be dropped. */
  protected isIdle(_session: Session): boolean {
    return true
  }

  create(account: string, now: number): Session {
    const session: Session = { id: this.newId(), account, title: untitled, updatedAt: now }
    this.all.set(session.id, session)
    for (const oldest of this.all.values()) {
      if (this.all.size <= this.most) break
      if (this.isIdle(oldest)) this.delete(oldest)
    }
    return session
  }

  find(account: string, id: string): Session | undefined {
    const session = this.all.get(id)
    return session?.account === account ? session : undefined
  }

  delete({ id }: Session): void {
    this.all.delete(id)
  }

  /** The sessions of an account, the latest first. */
  list(account: string): ReadonlyArray<Session> {
    return [...this.all.values()].filter((session) => session.account === account)
      .sort((a, b) => b.updatedAt - a.updatedAt)
  }

  /** A session was asked something. The first 40 characters of its first question are its title. */
  asked(session: Session, prompt: string, now: number): void {
    session.updatedAt = now
    if (session.title !== untitled) return
    const question = readPrompt(prompt).findLast(({ role }) => role === "user")?.text ?? ""
    session.title = Array.from(question.split("\n")[0] ?? "").slice(0, 40).join("") || untitled
  }
}
