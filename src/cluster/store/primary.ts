/**
 * Finds the primary of a store that several servers name: sentinels, or the nodes of a cluster.
 *
 * All of them are asked concurrently. The answer with the highest configuration epoch is the newest, so that a server which missed
 * a failover does not lead back to the old primary. A majority that names another primary all the same is right in the end: the
 * newest answer came from a server that has died, or is cut off from the others. `createSentinel` and `createCluster` of the Redis client are not used: they
 * repeat commands on another server by themselves, before this node has brought it what it holds.
 */
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import type * as Scope from "effect/Scope"
import type { Endpoint, GuidedAddress } from "./address.ts"
import { connect, type Connection, isRefusal, textOf } from "./connection.ts"
import { StoreInvalid, StoreUnavailable } from "./StoreShape.ts"

/** The hash slot of all keys, which begin with `gw:{main}:`. */
const slot = 12_501

/** The most servers that are asked: those of the address, then nodes that they name. */
const mostGuides = 32

/** Searches in a row with the same majority, after which it wins. Until then a failover may be spreading among the servers. */
export const searchesToOverrule = 5

/** Least timeout of an answer, in milliseconds. */
const leastPatience = 500

interface Answer {
  /** `undefined` if the server knows of no primary. */
  readonly primary: Endpoint | undefined
  readonly epoch: number
  /** Other servers to ask. */
  readonly others: ReadonlyArray<Endpoint>
}

/** Reads a reply to `SENTINEL MASTER`: names and values in turn. */
export const readSentinel = (reply: unknown): Answer => {
  const items = Array.isArray(reply) ? reply.map(String) : []
  const field = (name: string): string => {
    const at = items.indexOf(name)
    return at === -1 ? "" : items[at + 1] ?? ""
  }
  const [host, port] = [field("ip"), Number(field("port"))]
  return {
    primary: host === "" || !(port > 0) ? undefined : { host, port },
    epoch: Number(field("config-epoch")),
    others: []
  }
}

const holdsSlot = (range: string): boolean => {
  const [from, to = from] = range.split("-")
  return /^\d+(?:-\d+)?$/.test(range) && Number(from) <= slot && slot <= Number(to)
}

/**
 * Reads a reply to `CLUSTER NODES`: in each line id, address (`ip:port@busport[,hostname]`), flags, primary, times, epoch,
 * link and slots. `asked` replaces an address that a node does not know of itself; `tls` prefers host names, which
 * certificates have.
 */
export const readCluster = (reply: unknown, asked: Endpoint, tls: boolean): Answer => {
  let answer: Answer = { primary: undefined, epoch: -1, others: [] }
  const others: Array<Endpoint> = []
  for (const line of String(reply).split("\n")) {
    const [, address = "", flags = "", , , , epoch, , ...slots] = line.trim().split(" ")
    const parts = /^(.*):(\d+)(?:@\d+)?(?:,([^,]*))?/.exec(address)
    if (parts === null || flags.includes("noaddr")) continue
    const host = tls && parts[3] !== undefined && parts[3] !== "" ? parts[3] : parts[1]!
    const endpoint = { host: host === "" ? asked.host : host, port: Number(parts[2]) }
    if (!flags.includes("fail")) others.push(endpoint)
    if (flags.includes("master") && slots.some(holdsSlot) && Number(epoch) > answer.epoch) {
      answer = { primary: endpoint, epoch: Number(epoch), others }
    }
  }
  return { ...answer, others }
}

/**
 * The newest of the answers with a primary. One that is older than the epoch `known` counts only if every server has answered
 * (`undefined` for those that have not): then the servers have been set up anew.
 */
export const newestOf = (answers: ReadonlyArray<Answer | undefined>, known: number): Answer | undefined => {
  const [newest] = answers
    .filter((answer) => answer?.primary !== undefined)
    .sort((one, other) => other!.epoch - one!.epoch)
  return newest !== undefined && newest.epoch < known && answers.includes(undefined) ? undefined : newest
}

const isSame = (one: Endpoint, other: Endpoint): boolean => one.host === other.host && one.port === other.port

const namesSame = (one: Answer, other: Answer | undefined): boolean =>
  one.primary !== undefined && other?.primary !== undefined && isSame(one.primary, other.primary)

/** The newest answer with the primary that more than half of all servers name, those without an answer included. */
export const majorityOf = (answers: ReadonlyArray<Answer | undefined>): Answer | undefined => {
  const [newest] = answers
    .filter((answer) => answer !== undefined)
    .filter((answer) => 2 * answers.filter((other) => namesSame(answer, other)).length > answers.length)
    .sort((one, other) => other.epoch - one.epoch)
  return newest
}

const unavailable = new StoreUnavailable({ message: "No server names the store's primary" })

/** The reason for which no answer will ever come; `undefined` for a passing one. */
const lastingFault = ({ sentinel }: GuidedAddress, error: unknown): string | undefined => {
  const text = textOf(error)
  if (isRefusal(error)) {
    return `the ${sentinel === undefined ? "cluster" : "sentinels"} of GATEWAY_STORE_URL refuse the credentials`
  }
  if (/No such master/i.test(text)) return "the sentinels of GATEWAY_STORE_URL know no primary of its name"
  if (/cluster support disabled/i.test(text)) return "the servers of GATEWAY_STORE_URL are no cluster: use redis://"
  if (/unknown command/i.test(text)) {
    return "the servers of GATEWAY_STORE_URL are no sentinels, which mostly listen on port 26379"
  }
  return undefined
}

/**
 * Makes the search; the scope closes its connections. It fails with `StoreInvalid` if the servers answer that they will never
 * name a primary.
 */
export const makePrimarySearch = Effect.fnUntraced(function*(
  address: GuidedAddress,
  commandPatience: number,
  failed: (error: unknown) => void = () => undefined
): Effect.fn.Return<Effect.Effect<Endpoint, StoreInvalid | StoreUnavailable>, never, Scope.Scope> {
  const { sentinel, tls } = address
  const guides: Array<Endpoint> = [...address.guides]
  const connections = new Map<Endpoint, Connection>()
  /** Servers without an answer to the last question, which the others do not wait for again. */
  const silent = new Set<Endpoint>()
  const patience = Math.max(leastPatience, commandPatience)
  /** The epoch of the primary that was found last. */
  let epoch = -1
  /** Searches in a row whose majority differs from the newest answer. */
  let disputes = 0
  /** The highest epoch that a majority has overruled. Answers up to it are not news. */
  let overruled = -1
  const credentials = sentinel ?? address
  yield* Effect.addFinalizer(() => Effect.forEach(connections.values(), ({ close }) => close, { discard: true }))

  const connected = Effect.fnUntraced(function*(guide: Endpoint) {
    const known = connections.get(guide)
    if (known !== undefined) return known
    const { password, username } = credentials
    const made = yield* connect(
      { socket: { ...guide, tls }, username, password, database: 0, shown: address.shown },
      failed,
      "one"
    )
    connections.set(guide, made)
    return made
  })

  const ask = Effect.fnUntraced(function*(guide: Endpoint) {
    const { redis } = yield* connected(guide)
    return sentinel === undefined
      ? readCluster(yield* redis.send<unknown>("CLUSTER", "NODES"), guide, tls)
      : readSentinel(yield* redis.send<unknown>("SENTINEL", "MASTER", sentinel.name))
  })

  /**
   * Asks the nodes no longer that the others have removed, so that they count in no majority. The servers of the address are always
   * asked. A minority may be cut off, and knows too little to remove any.
   */
  const forgetRemoved = Effect.fnUntraced(function*(
    asked: ReadonlyArray<Endpoint>,
    answers: ReadonlyArray<Answer | undefined>
  ) {
    if (2 * answers.filter((answer) => answer !== undefined).length <= asked.length) return
    for (const guide of asked.slice(address.guides.length)) {
      const isNamed = answers.some((answer, i) =>
        asked[i] !== guide && answer?.others.some((other) => isSame(other, guide)) === true
      )
      if (isNamed) continue
      guides.splice(guides.indexOf(guide), 1)
      silent.delete(guide)
      const connection = connections.get(guide)
      connections.delete(guide)
      if (connection !== undefined) yield* connection.close
    }
  })

  /** The answer that counts: the newest one, or that of a majority which has named another primary for long enough. */
  const decide = Effect.fnUntraced(function*(answers: ReadonlyArray<Answer | undefined>) {
    const newest = newestOf(answers, epoch)
    const majority = majorityOf(answers)
    if (majority === undefined || (newest !== undefined && namesSame(majority, newest))) {
      disputes = 0
      return newest
    }
    disputes++
    const highest = Math.max(epoch, ...answers.map((answer) => answer?.epoch ?? -1))
    if (disputes < searchesToOverrule && highest > overruled) return newest
    if (highest > overruled) {
      overruled = highest
      const { host, port } = majority.primary!
      yield* Effect.logWarning(
        "The store's primary is the one that most servers name, against a newer answer of the others"
      )
        .pipe(Effect.annotateLogs({ url: address.shown, primary: `${host}:${port}` }))
    }
    return majority
  })

  const search = Effect.gen(function*() {
    const asked = [...guides]
    const isAnswered = asked.some((guide) => !silent.has(guide))
    const exits = yield* Effect.forEach(
      asked,
      (guide) =>
        Effect.exit(Effect.timeoutOrElse(ask(guide), {
          duration: silent.has(guide) && isAnswered ? patience / 5 : patience,
          orElse: () => Effect.fail(unavailable)
        })),
      { concurrency: "unbounded" }
    )
    const faults: Array<string | undefined> = []
    const answers = exits.map((exit, i): Answer | undefined => {
      if (Exit.isSuccess(exit)) silent.delete(asked[i]!)
      else {
        silent.add(asked[i]!)
        const failed = exit.cause.reasons.find((reason) => reason._tag === "Fail")?.error
        faults.push(failed instanceof StoreInvalid ? failed.message : lastingFault(address, failed))
        return undefined
      }
      for (const other of exit.value.others) {
        if (guides.length < mostGuides && !guides.some((guide) => isSame(guide, other))) guides.push(other)
      }
      return exit.value
    })
    yield* forgetRemoved(asked, answers)
    const found = yield* decide(answers.filter((_, i) => guides.includes(asked[i]!)))
    if (found?.primary !== undefined) {
      epoch = found.epoch
      return found.primary
    }
    // One server alone may be set up wrongly.
    const lasting = faults.filter((fault) => fault !== undefined)
    return yield* lasting[0] !== undefined && 2 * lasting.length > asked.length
      ? new StoreInvalid({ message: lasting[0] })
      : unavailable
  })
  return search
})
