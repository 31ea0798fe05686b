/**
 * Runs the requests of a soak by number, and counts their outcomes.
 */
import { readWhole } from "./answers.ts"
import type { Received } from "./client.ts"
import { parseJson, textAt } from "./json.ts"
import { judge, type Judgement } from "./oracle.ts"
import { type Plan, planOf } from "./plan.ts"
import { headersOf, requestOf } from "./requests.ts"
import { businessKey, churnKeyOf, keyOf, mostInFlight, type Site, targetOf } from "./site.ts"
import type { World } from "./world.ts"

/** A wrong outcome, with everything needed to repeat it. */
export interface Untrue {
  /** Number of the request or the change. */
  readonly number: number
  readonly what: "request" | "change"
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

const pause = (millis: number): Promise<void> => new Promise((resolve) => setTimeout(resolve, millis))

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
  private readonly seed: string
  private readonly began = performance.now()
  private readonly print: (untrue: Untrue, plan: Plan | undefined) => void

  constructor(
    site: Site,
    world: World,
    seed: string,
    print: (untrue: Untrue, plan: Plan | undefined) => void
  ) {
    this.site = site
    this.world = world
    this.seed = seed
    this.print = print
  }

  /** Number of started requests. */
  get started(): number {
    return this.next
  }

  /** Runs `clients` clients with one request at a time each until `stop`. Resolves when all requests have ended. */
  async run(clients: number, stop: () => boolean): Promise<void> {
    const client = async (): Promise<void> => {
      while (!stop()) await this.one(this.next++)
    }
    await Promise.all(Array.from({ length: clients }, client))
  }

  /** Records a wrong outcome. */
  untrue(what: Untrue["what"], number: number, why: string, requestId = "", plan?: Plan): void {
    const untrue: Untrue = { what, number, why, at: (performance.now() - this.began) / 1000, requestId }
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
    const judgement = judge(plan, received, this.world.explained(plan, began, performance.now()))
    if (plan.kind === "stored" && judgement.outcome === "whole" && !plan.stream) {
      const why = await this.readBack(plan, received)
      if (why !== undefined) return { received, judgement: { outcome: "untrue", error: undefined, why } }
    }
    return { received, judgement }
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
    const own = await get(businessKey)
    const read = own.status === 200 ? readWhole("responses", own.body).text : `${own.status} ${own.body.slice(0, 200)}`
    if (read !== plan.expected.text) return `the stored response is ${read}`
    const began = performance.now()
    const another = await get(churnKeyOf(0))
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
    const codes = this.world.explained(plan, began, performance.now())
    const answer = readWhole("responses", continued.body)
    if (continued.status === 429 && codes.has("rate_limit_exceeded")) return undefined
    return continued.status === 200 && answer.text.includes(plan.expected.text)
      ? undefined
      : `the continuation of ${id} lacks it in its prompt: ${continued.status} ${continued.body.slice(0, 300)}`
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
