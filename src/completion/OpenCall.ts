/**
 * A structured call that is still growing. Whether its arguments are a whole JSON object is followed as they come; they are
 * parsed once, where they may be whole.
 */
import type { Meter } from "../domain/stream/cooperative.ts"
import { ObjectScan } from "../domain/stream/ObjectScan.ts"
import { TextPieces } from "../domain/stream/text.ts"

const isObjectText = (text: string): boolean => {
  try {
    const value: unknown = JSON.parse(text)
    return typeof value === "object" && value !== null && !Array.isArray(value)
  } catch {
    return false
  }
}

export class OpenCall {
  /** The upstream's own number for it. */
  readonly upstreamIndex: number
  private readonly pieces = new TextPieces()
  private readonly scan = new ObjectScan()
  private parsed: boolean | undefined
  private readonly meter: Meter | undefined

  constructor(upstreamIndex: number, meter: Meter | undefined) {
    this.upstreamIndex = upstreamIndex
    this.meter = meter
  }

  /** Characters of the arguments so far. */
  get length(): number {
    return this.pieces.length
  }

  get arguments(): string {
    return this.pieces.toString()
  }

  /** Nothing but blanks has come. */
  get isBlank(): boolean {
    return this.scan.isBlank
  }

  /** The arguments are a JSON object, to which nothing but blanks can be added. */
  get isWhole(): boolean {
    if (!this.scan.isClosed) return false
    if (this.parsed === undefined) {
      if (this.meter !== undefined) this.meter.steps += this.pieces.length
      this.parsed = isObjectText(this.arguments)
    }
    return this.parsed
  }

  push(delta: string): void {
    this.pieces.push(delta)
    if (this.meter !== undefined) this.meter.steps += delta.length + 1
    this.scan.push(delta)
  }
}
