/**
 * Follows a JSON object's text as it comes, a character at a time, so that asking how far it is costs nothing. It looks at
 * brackets and strings alone: what it takes for closed may still be no JSON.
 */
const BEFORE = 0
const INSIDE = 1
const STRING = 2
const ESCAPE = 3
const AFTER = 4
const BROKEN = 5

const isBlank = (code: number): boolean => code === 32 || code === 10 || code === 13 || code === 9

export class ObjectScan {
  private state = BEFORE
  private depth = 0

  /** Nothing but blanks has come. */
  get isBlank(): boolean {
    return this.state === BEFORE
  }

  /** The object has begun and its last bracket has not come. */
  get isOpen(): boolean {
    return this.state === INSIDE || this.state === STRING || this.state === ESCAPE
  }

  /** The object's last bracket has come, and nothing but blanks after it. */
  get isClosed(): boolean {
    return this.state === AFTER
  }

  push(text: string): void {
    for (let i = 0; i < text.length && this.state !== BROKEN; i++) this.state = this.next(text.charCodeAt(i))
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
