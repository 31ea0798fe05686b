/**
 * Runs the requests of a soak by number, and counts their outcomes.
 */
import type { ErrorCode } from "../../src/domain/GatewayError.ts"
import { readWhole } from "./answers.ts"
import type { Received } from "./client.ts"
import { parseJson, textAt } from "./json.ts"
import { judge, type Judgement, judgeReset } from "./oracle.ts"
import { type Plan, planOf } from "./plan.ts"
import { headersOf, requestOf } from "./requests.ts"
import { businessKey, churnKeyOf, keyOf, mostInFlight, type Site, targetOf } from "./site.ts"
import { isRefusal, refusedAt, type Unrest } from "./unrest.ts"
import { pause } from "./until.ts"
import type { World } from "./world.ts"

/** A wrong outcome, with everything needed to repeat it. */
export interface Untrue {
  /** Number of the request, the change or the disturbance. */
  readonly number: number
  readonly what: "request" | "change" | "disturbance"
  readonly why: string
  readonly at: number
  readonly requestId: string
}

/** The outcomes of all requests so far. */
export interface Totals {
  requests: number
  hung: number
  internal: number
  /** By kind of request, then by outcome. */
  readonly kinds: Map<string, Map<string, number>>
  /** By fault, then by outcome. */
  readonly faults: Map<string, Map<string, number>>
  /** Explained errors, by code. */
  readonly errors: Map<string, number>
  readonly untrue: Array<Untrue>
}

/** Upper bound of wrong outcomes that are kept in full. */
const mostUntrue = 1000

const count = (counts: Map<string, number>, name: string): void => {
  counts.set(name, (counts.get(name) ?? 0) + 1)
}

const countIn = (counts: Map<string, Map<string, number>>, name: string, outcome: string): void => {
  const inner = counts.get(name) ?? new Map<string, number>()
  counts.set(name, inner)
  count(inner, outcome)
}

/** The pause of a client after a refusal by the store, in milliseconds. */
const refused = 100

/** The response and its verdict. */
export interface Done {
  readonly received: Received
  readonly judgement: Judgement
}

export class Load {
  readonly totals: Totals = {
    requests: 0,
    hung: 0,
    internal: 0,
    kinds: new Map(),
    faults: new Map(),
    errors: new Map(),
    untrue: []
  }
  private next = 0
  private readonly site: Site
  private readonly world: World
  private readonly unrest: Unrest
  private readonly seed: string
  private readonly began = performance.now()
  private readonly print: (untrue: Untrue, plan: Plan | undefined) => void

  constructor(
    options: {
      readonly site: Site
      readonly world: World
      readonly unrest: Unrest
      readonly seed: string
      readonly print: (untrue: Untrue, plan: Plan | undefined) => void
    }
  ) {
    this.site = options.site
    this.world = options.world
    this.unrest = options.unrest
    this.seed = options.seed
    this.print = options.print
  }

  /** Number of started requests. */
  get started(): number {
    return this.next
  }

  /**
   * Runs `clients` clients with one request at a time each until `stop`. Resolves when all requests have ended. `rate` is the most
   * requests in a second.
   */
  async run(clients: number, rate: number, stop: () => boolean): Promise<void> {
    const client = async (): Promise<void> => {
      while (!stop()) {
        const next = performance.now() + 1000 * clients / rate
        const { judgement } = await this.one(this.next++)
        if (judgement.outcome === "refused") await pause(refused)
        while (!stop() && performance.now() < next) await pause(Math.min(100, Math.max(1, next - performance.now())))
      }
    }
    await Promise.all(Array.from({ length: clients }, client))
  }

  /** Records a wrong outcome. */
  untrue(what: Untrue["what"], number: number, why: string, requestId = "", plan?: Plan): void {
    const untrue: Untrue = { what, number, why, at: (performance.now() - this.began) / 1000, requestId }
    const disturbance = this.unrest.during(performance.now())
    if (disturbance !== undefined) disturbance.untrue++
    if (this.totals.untrue.length < mostUntrue) this.totals.untrue.push(untrue)
    this.print(untrue, plan)
  }

  /** Runs the request with this number. */
  async one(number: number): Promise<Done> {
    const plan = planOf(this.seed, number)
    const done = await this.carryOut(plan)
    this.note(plan, done)
    return done
  }

  private async carryOut(plan: Plan): Promise<Done> {
    const { behaviour } = plan
    const began = performance.now()
    const key = keyOf(plan)
    const sent = requestOf(plan, key, targetOf(plan))
    const inQueue = behaviour._tag === "Leaves" && behaviour.when === "queue"
    const holding = new AbortController()
    const held = inQueue ? await this.hold(plan, holding.signal) : []
    const received = await this.site.client.send(sent, behaviour)
    holding.abort()
    await Promise.all(held)
    const judgement = this.judge(plan, received, this.world.explained(plan, began, received.ended))
    if (plan.kind === "stored" && judgement.outcome === "whole" && !plan.stream) {
      const why = await this.readBack(plan, received)
      if (why !== undefined) return { received, judgement: { outcome: "untrue", error: undefined, why } }
    }
    return { received, judgement }
  }

  /** Judges a response, with the disturbance of its time. */
  private judge(plan: Plan, received: Received, explained: ReadonlySet<ErrorCode>): Judgement {
    const { unrest } = this
    const reset = unrest.resetting(received)
    if (reset !== undefined) {
      unrest.reset(reset, received.port)
      return judgeReset(plan, received, explained)
    }
    const at = refusedAt(received)
    const refusing = isRefusal(received) ? unrest.refusing(at) : undefined
    if (refusing === undefined) return judge(plan, received, explained)
    const judgement = judge(plan, received, new Set([...explained, "store_unavailable"]))
    if (judgement.outcome !== "error") return judgement
    unrest.refuse(refusing, at)
    return { ...judgement, outcome: "refused" }
  }

  /** Occupies all slots of the plan's pinned account, so that its request has to wait. */
  private async hold(plan: Plan, left: AbortSignal): Promise<ReadonlyArray<Promise<unknown>>> {
    const { body, ...sent } = requestOf(
      { ...plan, kind: "text", style: "chat", stream: true, model: "upstream-chat", prompt: "!pace 100ms\n!count 600" },
      businessKey,
      targetOf(plan)
    )
    const held = Array.from(
      { length: mostInFlight },
      () => this.site.client.send({ ...sent, body }, { _tag: "Reads" }, left)
    )
    await pause(50)
    return held
  }

  /** Reads a stored response as its owner and as another caller, and continues it. */
  private async readBack(plan: Plan, received: Received): Promise<string | undefined> {
    const id = textAt(parseJson(received.body), "id")
    const get = (key: string) =>
      this.site.client.send({
        method: "GET",
        path: `/v1/responses/${id}`,
        headers: headersOf("responses", key),
        body: ""
      })
    const stored = received.ended
    const own = await get(businessKey)
    if (this.isExcused(own)) return undefined
    const losing = own.status === 404 ? this.unrest.losing(stored) : undefined
    if (losing !== undefined) {
      losing.lost++
      return undefined
    }
    const read = own.status === 200 ? readWhole("responses", own.body).text : `${own.status} ${own.body.slice(0, 200)}`
    if (read !== plan.expected.text) return `the stored response is ${read}`
    const began = performance.now()
    const another = await get(churnKeyOf(0))
    if (this.isExcused(another)) return undefined
    const explained = this.world.explained({ ...plan, credential: "churn", variant: 0 }, began, performance.now())
    if (another.status !== 404 && !(another.status === 401 && explained.has("authentication_failed"))) {
      return `another caller's read of ${id} is ${another.status}`
    }
    const continued = await this.site.client.send({
      method: "POST",
      path: "/v1/responses",
      headers: headersOf("responses", businessKey),
      body: JSON.stringify({ model: "upstream-chat", input: "!echo-prompt", previous_response_id: id, store: false })
    })
    if (this.isExcused(continued)) return undefined
    const codes = this.world.explained(plan, began, performance.now())
    const answer = readWhole("responses", continued.body)
    if (continued.status === 429 && codes.has("rate_limit_exceeded")) return undefined
    return continued.status === 200 && answer.text.includes(plan.expected.text)
      ? undefined
      : `the continuation of ${id} lacks it in its prompt: ${continued.status} ${continued.body.slice(0, 300)}`
  }

  /** Whether a failover or a crash explains that a stored response cannot be checked. Counts it there. */
  private isExcused(received: Received): boolean {
    const reset = this.unrest.resetting(received)
    if (reset !== undefined) this.unrest.reset(reset, received.port)
    const refusing = isRefusal(received) ? this.unrest.refusing(refusedAt(received)) : undefined
    if (refusing !== undefined) this.unrest.refuse(refusing, refusedAt(received))
    return reset !== undefined || refusing !== undefined
  }

  private note(plan: Plan, { judgement, received }: Done): void {
    const { totals } = this
    const { error, outcome, why } = judgement
    totals.requests++
    if (outcome === "hung") totals.hung++
    if (received.status === 500 || error === "internal_error" || error === "INTERNAL") totals.internal++
    countIn(totals.kinds, plan.kind, outcome)
    if (plan.fault !== undefined) {
      countIn(totals.faults, plan.fault.lines.join(" + ").replaceAll("!fault ", ""), outcome)
    }
    if (error !== undefined && outcome === "error") count(totals.errors, error)
    if (why !== undefined) this.untrue("request", plan.number, why, received.requestId, plan)
  }
}
