/** What the server of one account has said of its quota. */
import { encodeWindows, mostWindows, type QuotaWindow, windowKey } from "../domain/quota.ts"

/** The windows of one account: `mostWindows` at most, of which the oldest that has something left goes first. */
export class AccountQuota {
  readonly #windows = new Map<string, QuotaWindow>()
  /** The windows that the store has not received; in a pool of one process all of them. */
  readonly #unsent = new Set<string>()

  /** Learns a window, unless a later answer has said more. */
  learn(window: QuotaWindow, isSent = false): void {
    const key = windowKey(window)
    const known = this.#windows.get(key)
    if (known !== undefined && known.seen_at > window.seen_at) return
    this.#windows.delete(key)
    this.#windows.set(key, window)
    if (!isSent) this.#unsent.add(key)
    if (this.#windows.size <= mostWindows) return
    let oldest: string | undefined
    for (const [other, { status }] of this.#windows) {
      oldest ??= other
      if (status !== "exhausted") {
        oldest = other
        break
      }
    }
    this.#windows.delete(oldest!)
    this.#unsent.delete(oldest!)
  }

  /** The earliest reset of a window of the whole account that has something left, in Unix milliseconds; `undefined` without any. */
  get reset(): number | undefined {
    let earliest: number | undefined
    for (const { model, resets_at, status } of this.#windows.values()) {
      if (model === null && status !== "exhausted") earliest = Math.min(earliest ?? resets_at, resets_at)
    }
    return earliest
  }

  list(): ReadonlyArray<QuotaWindow> {
    return [...this.#windows.values()]
  }

  /** The windows that the end of a lease has not sent to the store, as words: each with its key before it. */
  get unsent(): string {
    return encodeWindows(Array.from(this.#unsent).flatMap((key) => this.#windows.get(key) ?? []))
  }

  /** `unsent`, for the end of a lease: later calls leave them out. */
  takeUnsent(): string {
    const { unsent } = this
    this.#unsent.clear()
    return unsent
  }
}
