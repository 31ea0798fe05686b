/**
 * The conversations of each session, as they were at their last answers (`domain/warmth.ts`).
 *
 * In memory at most `mostThreads`, of 1 KiB each at most, and `mostOfSession` of a session; the oldest go first.
 */
import type { Thread } from "../domain/warmth.ts"

const mostThreads = 10_000
const mostOfSession = 8

const none: ReadonlyArray<Thread> = []

export class Threads {
  /** The threads of each session, the newest last. Sessions are in the order of use. */
  readonly #sessions = new Map<string, ReadonlyArray<Thread>>()
  #count = 0

  /** The threads of a session, the newest last. */
  of(session: string): ReadonlyArray<Thread> {
    return this.#sessions.get(session) ?? none
  }

  /** Keeps a thread that another process has seen last, unless it is known. */
  add(session: string, thread: Thread): void {
    const isKnown = this.of(session).some((own) =>
      own.elements === thread.elements && own.bytes === thread.bytes && own.sums.at(-1) === thread.sums.at(-1)
    )
    if (!isKnown) this.keep(session, thread, undefined)
  }

  /** Keeps a thread in place of the one that it continues. */
  keep(session: string, thread: Thread, continued: Thread | undefined): void {
    const before = this.of(session)
    const kept = [...before.filter((other) => other !== continued).slice(-(mostOfSession - 1)), thread]
    this.#sessions.delete(session)
    this.#sessions.set(session, kept)
    this.#count += kept.length - before.length
    if (this.#count > mostThreads) this.#dropOldest()
  }

  #dropOldest(): void {
    for (const [session, [, ...rest]] of this.#sessions) {
      if (rest.length === 0) this.#sessions.delete(session)
      else this.#sessions.set(session, rest)
      this.#count--
      return
    }
  }
}
