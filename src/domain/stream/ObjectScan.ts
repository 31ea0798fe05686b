/**
 * Tracks whether the text of a JSON object, which arrives in pieces, is complete. It checks only brackets and strings: a closed object may
 * still be invalid JSON.
 */
import { BACKSLASH, CLOSE_BRACE, CLOSE_BRACKET, isBlank, OPEN_BRACE, OPEN_BRACKET, QUOTE } from "./characters.ts"

const BEFORE = 0
const INSIDE = 1
const STRING = 2
const ESCAPE = 3
const AFTER = 4
const BROKEN = 5

export class ObjectScan {
  private state = BEFORE
  private depth = 0

  /** Only blanks have arrived. */
  get isBlank(): boolean {
    return this.state === BEFORE
  }

  /** The object has begun, and its last bracket has not arrived. */
  get isOpen(): boolean {
    return this.state === INSIDE || this.state === STRING || this.state === ESCAPE
  }

  /** The object's last bracket has arrived, and only blanks behind it. */
  get isClosed(): boolean {
    return this.state === AFTER
  }

  push(text: string): void {
    for (let i = 0; i < text.length && this.state !== BROKEN; i++) this.state = this.next(text.charCodeAt(i))
  }

  private next(code: number): number {
    switch (this.state) {
      case STRING:
        return code === BACKSLASH ? ESCAPE : code === QUOTE ? INSIDE : STRING
      case ESCAPE:
        return STRING
      case INSIDE:
        if (code === QUOTE) return STRING
        if (code === OPEN_BRACE || code === OPEN_BRACKET) this.depth++
        else if ((code === CLOSE_BRACE || code === CLOSE_BRACKET) && --this.depth === 0) return AFTER
        return INSIDE
      case BEFORE:
        if (isBlank(code)) return BEFORE
        this.depth = 1
        return code === OPEN_BRACE ? INSIDE : BROKEN
      default:
        return isBlank(code) ? AFTER : BROKEN
    }
  }
}
