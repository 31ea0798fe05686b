/**
 * Disturbs the gateways while requests run: failovers of the store, replacements and crashes of workers. Meanwhile every slot of some
 * accounts is taken and waited for, and a key with a limit is used up.
 */
import { readStream } from "./answers.ts"
import type { Received } from "./client.ts"
import { textAt } from "./json.ts"
import { clientPortsOf, type Gateway, serving } from "./processes.ts"
import { headersOf } from "./requests.ts"
import { accountOf, businessKey, mostAtOnce, nodesSince, type Site, wideLimits } from "./site.ts"
import { failovers } from "./store.ts"
import { type Disturbance, isRefusal, refusalTime, refusedAt, type Sort, type Unrest } from "./unrest.ts"
import { expectSoon, pause, until } from "./until.ts"

/** The accounts whose slots are all taken, and the limit of each during a disturbance. */
const pressed = 3
const limit = 2

/** Clients of each of these accounts: some of them wait. */
const holders = 4

/** Requests that the limited key allows: it is used up while the disturbance goes on. */
const allowed = 6

/** Events of a held stream, one each 100 ms. */
const events = [30, 45, 60] as const

/** The errors of a request to an account that other requests have put out of rotation. */
const elsewhere: ReadonlySet<string> = new Set([
  "upstream_error",
  "upstream_rate_limited",
  "rate_limit_exceeded",
  "no_account_available"
])

export interface DisturbOptions {
  readonly site: Site
  readonly unrest: Unrest
  readonly complain: (number: number, why: string) => void
}

export class Disturber {
  private readonly site: Site
  private readonly unrest: Unrest
  private readonly complain: DisturbOptions["complain"]
  private failovers = 0
  private made = 0

  constructor({ complain, site, unrest }: DisturbOptions) {
    this.site = site
    this.unrest = unrest
    this.complain = complain
  }

  /** Causes a disturbance, and resolves when it is over. `undefined` if it could not be completed. */
  async disturb(sort: Sort): Promise<Disturbance | undefined> {
    const number = ++this.made
    try {
      return await this.press(number, sort)
    } catch (error) {
      this.complain(number, `${sort}: ${String(error)}`)
      return undefined
    }
  }

  private async press(number: number, sort: Sort): Promise<Disturbance> {
    const { admin, size } = this.site
    const accounts = Array.from({ length: pressed }, (_, i) => accountOf(`pressed-${number}-${i}`))
    const key = `soak-limited-key-${number}`
    const expectOk = async (what: string, calling: ReturnType<typeof admin>): Promise<void> => {
      const { status, text } = await calling
      if (status !== 200) this.complain(number, `${what}: ${status} ${text.slice(0, 300)}`)
    }
    const runtime = { ...wideLimits(size.clients), account_max_inflight: limit }
    await expectOk("limit", admin("PUT", "/admin/settings", { runtime }))
    for (const account of accounts) await expectOk("account", admin("POST", "/admin/accounts", account))
    await expectOk(
      "limited key",
      admin("POST", "/admin/keys", { key, limits: [{ window: "month", requests: allowed }] })
    )

    const kind = sort === "failover" ? failovers[this.failovers++ % failovers.length]! : sort
    const counted = { held: 0, whole: 0, used: 0 }
    let working = true
    const isOver = () => !working
    const work = Promise.all([
      ...accounts.flatMap(({ email }) =>
        Array.from({ length: holders }, (_, i) => this.hold(number, email, i, counted, isOver))
      ),
      this.useUp(key, counted, isOver)
    ])
    const emails = new Set(accounts.map(({ email }) => email))
    const pressure = async () => (await mostAtOnce(this.site)).filter(([email]) => emails.has(email))
    await until(async () => {
      const most = await pressure()
      return most.length === pressed && most.every(([, each]) => each === limit)
    }, 10_000)

    const disturbance = this.unrest.begin(sort, kind, performance.now())
    try {
      await this.cause[sort](disturbance)
      disturbance.over = performance.now()
      if (sort === "failover") await pause(refusalTime)
    } finally {
      disturbance.over = Math.min(disturbance.over, performance.now())
      working = false
      await work
    }
    await this.site.store?.settle()
    disturbance.most = Math.max(0, ...(await pressure()).map(([, most]) => most))
    disturbance.limit = limit
    disturbance.allowed = allowed
    Object.assign(disturbance, counted)
    for (const { email } of accounts) await expectOk("account", admin("DELETE", `/admin/accounts/${email}`))
    await expectOk("limited key", admin("DELETE", `/admin/keys/${key}`))
    return disturbance
  }

  private get last(): Gateway {
    return this.site.gateways.at(-1)!
  }

  /** Workers of the last gateway come and go. Those of the others stay, and show what a long life leaves. */
  private readonly cause: Readonly<Record<Sort, (disturbance: Disturbance) => Promise<void>>> = {
    failover: ({ kind }) => this.site.store!.failOver(kind),
    roll: async () => {
      const before = new Set(await serving(this.last, this.site.size.workers))
      this.last.child.kill("SIGHUP")
      await expectSoon(
        "all workers are replaced",
        async () => (await serving(this.last, this.site.size.workers)).every((pid) => !before.has(pid))
      )
      await this.untilComplete()
    },
    kill: async (disturbance) => {
      const workers = await serving(this.last, this.site.size.workers)
      const pid = workers[this.made % workers.length]!
      const stopped = performance.now()
      process.kill(pid, "SIGSTOP")
      const ports = await clientPortsOf(pid, Number(new URL(this.last.url).port))
      const crash = { node: this.site.gateways.length - 1, stopped, killed: performance.now(), ports }
      disturbance.crash = crash
      process.kill(pid, "SIGKILL")
      await expectSoon(
        "the worker has ended",
        async () => !(await serving(this.last, this.site.size.workers)).includes(pid)
      )
      await this.untilComplete()
    }
  }

  /** Waits until all workers serve. */
  private async untilComplete(): Promise<void> {
    const { gateways, size } = this.site
    const since = performance.now()
    await expectSoon("all workers serve", async () => {
      const nodes = await nodesSince(this.site, since)
      return nodes?.length === gateways.length * size.workers && nodes.every((node) => textAt(node, "state") === "up")
    })
  }

  private ask(prompt: string, key: string, stream: boolean, account?: string): Promise<Received> {
    return this.site.client.send({
      method: "POST",
      path: "/v1/chat/completions",
      headers: headersOf("chat", key, account),
      body: JSON.stringify({ model: "upstream-chat", stream, messages: [{ role: "user", content: prompt }] })
    })
  }

  /** Streams from one account, one reply after the other. A reply that has begun must end whole. */
  private async hold(
    number: number,
    email: string,
    holder: number,
    counted: { held: number; whole: number },
    isOver: () => boolean
  ): Promise<void> {
    for (let n = holder; !isOver(); n++) {
      const count = events[n % events.length]!
      const received = await this.ask(`!pace 100ms\n!count ${count}`, businessKey, true, email)
      const { body, how, requestId, status } = received
      const reset = this.unrest.resetting(received)
      if (reset !== undefined) {
        this.unrest.reset(reset, received.port)
        continue
      }
      const answer = readStream("chat", body)
      const isWhole = how === "whole" && answer.finish === "stop" &&
        answer.text === Array.from({ length: count }, (_, i) => i + 1).join(" ")
      const shown = `${status} (${how}) ${requestId} ${body.slice(-300)}`
      if (answer.text !== "") {
        counted.held++
        if (isWhole) counted.whole++
        else this.complain(number, `a held stream did not end whole: ${shown}`)
        continue
      }
      const refusing = isRefusal(received) ? this.unrest.refusing(refusedAt(received)) : undefined
      if (refusing !== undefined) this.unrest.refuse(refusing, refusedAt(received))
      else if (![...elsewhere].some((code) => body.includes(`"${code}"`))) {
        this.complain(number, `a held stream was refused: ${shown}`)
      }
      await pause(200)
    }
  }

  /** Uses a limited key. A request whose connection breaks may have been counted. */
  private async useUp(key: string, counted: { used: number }, isOver: () => boolean): Promise<void> {
    while (!isOver()) {
      const { how, status } = await this.ask("!say one", key, false)
      if (status === 200 || how !== "whole") counted.used++
      await pause(150)
    }
  }
}
