/**
 * Exchanges that are answered within the process, without a network: by the embedded upstream, and by recordings.
 */
import type { Deadlines } from "../../config/clock/Deadlines.ts"
import { Exchange, type Exchanges } from "../Exchange.ts"
import type { ExchangeRequest } from "../ExchangeRequest.ts"
import { traced } from "./traced.ts"

/** A whole response. */
export interface WholeAnswer {
  readonly status: number
  readonly headers: Readonly<Record<string, string>>
  readonly body: string | Uint8Array
}

/** Exchanges with `answer`; without one the connection breaks. */
export const answeredExchanges = (
  deadlines: Deadlines["Service"],
  answer: (request: ExchangeRequest) => WholeAnswer | undefined
): Exchanges["Service"] => ({
  secrets: [],
  start: traced(() => false, (request, options) => {
    const exchange = new Exchange(options, deadlines, request.origin)
    exchange.attach({ pause: () => {}, resume: () => {}, abort: () => {} })
    const answered = answer(request)
    if (answered === undefined) {
      exchange.broke(new Error("there is no answer"))
    } else {
      exchange.began(answered.status, answered.headers)
      exchange.received(typeof answered.body === "string" ? Buffer.from(answered.body) : answered.body)
      exchange.ended()
    }
    return exchange
  })
})
