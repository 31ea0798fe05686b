/**
 * Tells a client that has closed its sending half from one that has left: both look the same until something is sent, which the
 * system of one that has left answers with a reset.
 *
 * So bytes of the reply are sent ahead that are the same whatever the reply says: the beginning of its first line, and zeros
 * before the length of its next chunk. They are at most 9 of each, ever further apart.
 */
import type { ServerResponse } from "node:http"
import type { Socket } from "node:net"

/** Every reply begins with it. */
const version = "HTTP/1.1 "

/** Some clients take no more than 16 digits for a length. */
const mostZeros = 9

/** Milliseconds before the second look; each next one waits twice as long. */
const firstWait = 20

/** A client's system that answers nothing at all is found out by the system's own probes, after so many milliseconds. */
const silence = 1000

/** Whether node has written the head, which it makes before. */
const hasHead = (response: ServerResponse): boolean => Reflect.get(response, "_headerSent") === true

export class HalfClosed {
  private readonly socket: Socket
  private readonly response: ServerResponse
  private timer: NodeJS.Timeout | undefined
  private begun = 0
  private zeros = 0
  private wait = firstWait

  constructor(socket: Socket, response: ServerResponse) {
    this.socket = socket
    this.response = response
    socket.setKeepAlive(true, silence)
    this.look()
  }

  /** What is written next, without what was sent of it ahead. */
  rest(text: string): string {
    if (this.begun === 0 || !text.startsWith(version)) return text
    const rest = text.slice(this.begun)
    this.begun = 0
    return rest
  }

  end(): void {
    clearTimeout(this.timer)
  }

  private look(): void {
    const { response, socket } = this
    if (response.destroyed || response.writableEnded) return
    // What waits already is answered in the same way.
    const sends = socket.writableLength > 0 ? "" : this.ahead()
    if (sends === undefined) return
    socket.write(sends)
    this.timer = setTimeout(() => this.look(), this.wait).unref()
    this.wait *= 2
  }

  /** A byte of the reply that is the same in every reply; `undefined` when all are sent. */
  private ahead(): string | undefined {
    if (!hasHead(this.response)) return this.begun < version.length ? version[this.begun++] : undefined
    return this.response.chunkedEncoding && this.zeros++ < mostZeros ? "0" : undefined
  }
}
