/** A client of WebSocket connections, which collects the messages of the gateway. */
import { WebSocket } from "@effect/platform-node/NodeWS"
import type { JsonRecord } from "../../../../src/domain/json.ts"
import { businessKey } from "../../../support/gateway.ts"
import { untilValue } from "../../../support/until.ts"

export const model = "upstream-chat"

/** An event as the gateway sends it. */
export type Event = JsonRecord & {
  readonly type: string
  readonly stream_id?: string
  readonly status?: number
  readonly error?: {
    readonly code: string
    readonly type: string
    readonly message: string
    readonly param: string | null
  }
  readonly response?: JsonRecord & {
    readonly id: string
    readonly status: string
    readonly output_text: string
    readonly output: ReadonlyArray<JsonRecord>
    readonly usage: JsonRecord | null
    readonly error: { readonly code: string } | null
  }
  readonly headers?: Readonly<Record<string, string>>
}

const isLast = ({ type }: Event) =>
  type === "response.completed" || type === "response.failed" || type === "response.incomplete" || type === "error"

export class Client {
  readonly events: Array<Event> = []
  readonly socket: WebSocket
  pings = 0
  closed: { readonly code: number; readonly reason: string } | undefined
  failure: Error | undefined
  #read = 0

  constructor(
    url: string,
    headers: Readonly<Record<string, string>> = { authorization: `Bearer ${businessKey}` },
    options: { readonly autoPong?: boolean } = {}
  ) {
    this.socket = new WebSocket(`${url.replace("http", "ws")}/v1/responses`, { headers, ...options })
    this.socket.on("message", (data: Buffer) => this.events.push(JSON.parse(data.toString()) as Event))
    this.socket.on("ping", () => this.pings++)
    this.socket.on("close", (code, reason) => this.closed = { code, reason: reason.toString() })
    this.socket.on("error", (error) => this.failure = error)
  }

  /** A connection that is open. */
  static async open(url: string, headers?: Readonly<Record<string, string>>): Promise<Client> {
    const client = new Client(url, headers)
    await untilValue("the connection opens", () => client.socket.readyState, (state) => state !== WebSocket.CONNECTING)
    if (client.failure !== undefined) throw client.failure
    return client
  }

  /** Asks for a response. */
  create(body: JsonRecord): void {
    this.send({ type: "response.create", model, ...body })
  }

  send(message: unknown): void {
    this.socket.send(typeof message === "string" ? message : JSON.stringify(message))
  }

  /** The events of a lane that were not read, up to the last one of a response. Leaves those of other lanes. */
  async reply(lane?: string): Promise<ReadonlyArray<Event>> {
    const mine = (event: Event) => event.stream_id === lane
    const end = await untilValue(
      `a reply ends in the lane ${lane}`,
      () => this.#unread().findIndex((event) => mine(event) && isLast(event)),
      (index) => index !== -1
    )
    const first = this.#unread().slice(0, end + 1)
    const read = first.filter(mine)
    const others = first.filter((event) => !mine(event))
    this.events.splice(this.#read, first.length, ...read, ...others)
    this.#read += read.length
    return read
  }

  /** The response of the next reply. */
  async response(lane?: string): Promise<NonNullable<Event["response"]>> {
    const last = (await this.reply(lane)).at(-1)!
    if (last.response === undefined) throw new Error(`No response: ${JSON.stringify(last)}`)
    return last.response
  }

  /** The error of the next reply. */
  async error(lane?: string): Promise<Event & { readonly error: NonNullable<Event["error"]> }> {
    const last = (await this.reply(lane)).at(-1)!
    if (last.error === undefined) throw new Error(`No error: ${JSON.stringify(last)}`)
    return last as Event & { readonly error: NonNullable<Event["error"]> }
  }

  close(): void {
    this.socket.close()
  }

  async end(): Promise<{ readonly code: number; readonly reason: string }> {
    return (await untilValue("the connection is closed", () => this.closed, (closed) => closed !== undefined))!
  }

  #unread(): ReadonlyArray<Event> {
    return this.events.slice(this.#read)
  }
}
