/** The part of the memory of records that one body takes, as it grows. */
import { type HoldLimit, markSize, openSize } from "./RecordedBytes.ts"

/** The record of the body. */
interface ReservingRecord {
  /** Reserves `bytes` more, or releases a negative number. Returns false at the limit. */
  readonly resize: (bytes: number) => boolean
}

/** The memory that a record reserves for one body. */
export class Reservation implements HoldLimit {
  readonly #record: ReservingRecord
  readonly #most: number
  #reserved = 0
  #have = 0
  #marks = 0

  constructor(record: ReservingRecord, most: number) {
    this.#record = record
    this.#most = most
  }

  allow(next: number, chunks: number): number {
    const wanted = Math.min(next, this.#most)
    if (this.#resize(openSize(wanted) + markSize * chunks)) {
      this.#have = wanted
      this.#marks = chunks
    }
    return this.#have
  }

  /** Releases the reserve for more growth. */
  complete(): void {
    this.#resize(this.#have + markSize * this.#marks)
  }

  #resize(bytes: number): boolean {
    if (!this.#record.resize(bytes - this.#reserved)) return false
    this.#reserved = bytes
    return true
  }
}
