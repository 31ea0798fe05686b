/**
 * Distinguishes a client that has closed its sending half from one that has disconnected. Both look the same until
 * something is sent: the system of a disconnected client answers with a reset.
 *
 * So bytes that are the same in every reply are sent early: the start of the status line, and leading zeros of the next
 * chunk length. At most 9 of each, at doubling intervals.
 */
import type { ServerResponse } from "node:http"
import type { Socket } from "node:net"

/** The start of every reply. */
const version = "HTTP/1.1 "

/** Some clients accept at most 16 digits in a chunk length. */
const mostZeros = 9

/** Milliseconds before the second probe. The interval doubles. */
const firstWait = 20

/** Milliseconds before the system's keep-alive probes, which find clients whose system does not answer. */
const silence = 1000

/** Whether node has written the head; it is created earlier. */
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

  /** Removes the bytes that were sent early. */
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
    // Pending bytes are a probe too.
    const sends = socket.writableLength > 0 ? "" : this.ahead()
    if (sends === undefined) return
    socket.write(sends)
    this.timer = setTimeout(() => this.look(), this.wait).unref()
    this.wait *= 2
  }

  /** The next early byte; `undefined` when all are sent. */
  private ahead(): string | undefined {
    if (!hasHead(this.response)) return this.begun < version.length ? version[this.begun++] : undefined
    return this.response.chunkedEncoding && this.zeros++ < mostZeros ? "0" : undefined
  }
}
