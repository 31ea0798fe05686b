/**
 * A structured call that is still growing. Whether its arguments are a whole JSON object is followed as they come, a character
 * at a time, so that asking costs nothing; they are parsed once, where they may be whole.
 */
import type { Meter } from "../stream/steps.ts"
import { TextPieces } from "../stream/TextPieces.ts"

const BEFORE = 0
const INSIDE = 1
const STRING = 2
const ESCAPE = 3
const AFTER = 4
const BROKEN = 5

const isBlank = (code: number): boolean => code === 32 || code === 10 || code === 13 || code === 9

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
  private state = BEFORE
  private depth = 0
  private parsed: boolean | undefined
  private readonly meter: Meter | undefined

  constructor(upstreamIndex: number, meter: Meter | undefined) {
    this.upstreamIndex = upstreamIndex
    this.meter = meter
  }

  get arguments(): string {
    return this.pieces.toString()
  }

  /** Nothing but blanks has come. */
  get isBlank(): boolean {
    return this.state === BEFORE
  }

  /** The arguments are a JSON object, to which nothing but blanks can be added. */
  get isWhole(): boolean {
    if (this.state !== AFTER) return false
    if (this.parsed === undefined) {
      if (this.meter !== undefined) this.meter.steps += this.pieces.length
      this.parsed = isObjectText(this.arguments)
    }
    return this.parsed
  }

  push(delta: string): void {
    this.pieces.push(delta)
    if (this.meter !== undefined) this.meter.steps += delta.length + 1
    for (let i = 0; i < delta.length && this.state !== BROKEN; i++) this.state = this.next(delta.charCodeAt(i))
  }

  private next(code: number): number {
    switch (this.state) {
      case STRING:
        return code === 92 ? ESCAPE : code === 34 ? INSIDE : STRING
      case ESCAPE:
        return STRING
      case INSIDE:
        if (code === 34) return STRING
        if (code === 123 || code === 91) this.depth++
        else if ((code === 125 || code === 93) && --this.depth === 0) return AFTER
        return INSIDE
      case BEFORE:
        if (isBlank(code)) return BEFORE
        this.depth = 1
        return code === 123 ? INSIDE : BROKEN
      default:
        return isBlank(code) ? AFTER : BROKEN
    }
  }
}
