/**
 * What a test has ordered for requests to come: faults and replies, each for the first requests that fit.
 */
import type { CallName } from "./envelope.ts"
import type { Fault } from "./Fault.ts"

/** A request, as far as orders can choose by it. */
export interface OrderTarget {
  readonly call: CallName
  /** Email, mobile or bare token. */
  readonly account: string
  readonly body: string
}

interface Order {
  /** `completion` where left out. */
  readonly call?: CallName | undefined
  /** Only requests of this account: email, mobile or bare token. */
  readonly account?: string | undefined
  /** Only requests whose body holds this text. */
  readonly containing?: string | undefined
  /** For how many requests (1). */
  readonly times?: number | undefined
}

/** A fault for the next requests that fit. */
export interface FaultOrder extends Order, Fault {}

/** A reply for the next completions (or continued streams) that fit: a script, or a recorded stream byte for byte. */
export type ReplyOrder =
  & Order
  & (
    | { readonly script: string }
    | {
      readonly raw: string | Uint8Array
      /** Bytes in one write (all). */
      readonly chunk?: number | undefined
    }
  )

/** A queue of orders: each request takes the first that fits it. */
export class Orders<A extends Order> {
  private readonly queue: Array<{ readonly order: A; left: number }> = []

  add(order: A): void {
    this.queue.push({ order, left: order.times ?? 1 })
  }

  take(target: OrderTarget): A | undefined {
    if (this.queue.length === 0) return undefined
    const index = this.queue.findIndex(({ order }) =>
      (order.call ?? "completion") === target.call &&
      (order.account === undefined || order.account === target.account) &&
      (order.containing === undefined || target.body.includes(order.containing))
    )
    const found = this.queue[index]
    if (found === undefined) return undefined
    if (--found.left <= 0) this.queue.splice(index, 1)
    return found.order
  }

  clear(): void {
    this.queue.length = 0
  }
}
