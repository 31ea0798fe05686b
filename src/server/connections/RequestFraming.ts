/**
 * Finds the end of each request in the bytes of a connection: the blank line behind its head, and the end of its body (RFC 9112).
 *
 * Looks at each byte once and keeps none. It decides only how much node's parser is given at a time; the parser alone decides what
 * the bytes mean.
 */
import { HeadEnd } from "../../domain/stream/HeadEnd.ts"

const CR = 0x0d
const LF = 0x0a

const BLANK = 0
const HEAD = 1
const SIZED = 2
const CHUNKS = 3
const TRAILERS = 4

/** Chunks of a body in one piece: node calls back and copies for each of them. */
const mostChunks = 128

/** The value of a hexadecimal digit; -1 for another byte. */
const digitOf = (byte: number): number => {
  if (byte >= 0x30 && byte <= 0x39) return byte - 0x30
  const letter = byte | 0x20
  return letter >= 0x61 && letter <= 0x66 ? letter - 0x57 : -1
}

export class RequestFraming {
  private state = BLANK
  private readonly headEnd = new HeadEnd()
  /** Bytes of the body, or of the current chunk and its line end, that are still to come. */
  private left = 0
  /** The size of the next chunk, and whether its digits are over. */
  private size = 0
  private isSizeRead = false
  /** No byte of the current line of the trailers has come yet. */
  private isLineEmpty = true

  /** Declares the body of the request whose head has ended: its bytes, or `undefined` for a chunked body. */
  bodyFollows(length: number | undefined): void {
    if (length === undefined) this.beginChunks()
    else if (length > 0) {
      this.state = SIZED
      this.left = length
    }
  }

  /** The number of blank bytes in front of the next request, which have no meaning there; 0 within a request. */
  blanks(bytes: Uint8Array): number {
    if (this.state !== BLANK) return 0
    let at = 0
    while (at < bytes.length && (bytes[at] === CR || bytes[at] === LF)) at++
    return at
  }

  /** Reads on, to the end of a head, of a body or of `mostChunks` chunks at the latest; returns the number of bytes that were read. */
  next(bytes: Uint8Array): number {
    switch (this.state) {
      case SIZED: {
        const length = Math.min(this.left, bytes.length)
        this.left -= length
        if (this.left === 0) this.state = BLANK
        return length
      }
      case CHUNKS:
      case TRAILERS:
        return this.chunks(bytes)
      default:
        return this.head(bytes)
    }
  }

  private head(bytes: Uint8Array): number {
    const end = this.headEnd.find(bytes)
    this.state = end === -1 ? HEAD : BLANK
    return end === -1 ? bytes.length : end
  }

  private beginChunks(): void {
    this.state = CHUNKS
    this.left = 0
    this.size = 0
    this.isSizeRead = false
  }

  private chunks(bytes: Uint8Array): number {
    let at = 0
    let count = 0
    while (at < bytes.length && count < mostChunks && this.state !== BLANK) {
      if (this.left > 0) {
        const length = Math.min(this.left, bytes.length - at)
        this.left -= length
        at += length
        if (this.left === 0) count++
      } else if (this.state === CHUNKS) this.sizeByte(bytes[at++]!)
      else this.trailerByte(bytes[at++]!)
    }
    return at
  }

  /** Reads a byte of a chunk's first line: `size[;extensions]`. */
  private sizeByte(byte: number): void {
    if (byte === LF) {
      if (this.size > 0) this.left = this.size + 2
      else {
        this.state = TRAILERS
        this.isLineEmpty = true
      }
      this.size = 0
      this.isSizeRead = false
      return
    }
    if (this.isSizeRead) return
    const digit = digitOf(byte)
    if (digit === -1) this.isSizeRead = true
    else this.size = this.size * 16 + digit
  }

  private trailerByte(byte: number): void {
    if (byte !== LF) this.isLineEmpty &&= byte === CR
    else if (this.isLineEmpty) this.state = BLANK
    else this.isLineEmpty = true
  }
}
