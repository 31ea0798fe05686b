/**
 * The health check of containers and services. Loads only Node's own modules.
 */
import { get } from "node:http"
import { setTimeout as sleep } from "node:timers/promises"
import { parseArgs } from "node:util"

/** Options of a health check. Times are in seconds. */
export interface HealthOptions {
  /** Base URL of the gateway; by default derived from `HOST` and `PORT`. */
  readonly url: string | undefined
  /** Requests `/healthz` (liveness) instead of `/readyz` (readiness). */
  readonly live: boolean
  /** Timeout of one request. */
  readonly timeout: number
  /** How long to repeat failing requests. */
  readonly wait: number
}

export const healthDefaults = { timeout: 3, wait: 0 } as const

/** The outcome; a failure has a one-line reason. */
export type Health =
  | { readonly _tag: "Yes"; readonly answer: "ready" | "live" }
  | { readonly _tag: "No"; readonly reason: string }

const no = (reason: string): Health => ({ _tag: "No", reason })

const seconds = (text: string | undefined, absent: number): number | undefined =>
  text === undefined ? absent : /^\d+(?:\.\d+)?$/.test(text) ? Number(text) : undefined

/** Parses the options. Returns undefined for anything else, which the full command line then reports. */
export const parseHealth = (args: ReadonlyArray<string>): HealthOptions | undefined => {
  try {
    const { values: { live = false, timeout, url, wait } } = parseArgs({
      args,
      options: {
        live: { type: "boolean" },
        timeout: { type: "string" },
        url: { type: "string" },
        wait: { type: "string" }
      }
    })
    const options = {
      url,
      live,
      timeout: seconds(timeout, healthDefaults.timeout),
      wait: seconds(wait, healthDefaults.wait)
    }
    const { timeout: longest, wait: patience } = options
    return longest === undefined || patience === undefined
      ? undefined
      : { ...options, timeout: longest, wait: patience }
  } catch {
    return undefined
  }
}

/** Wildcard listen addresses, with the loopback address to connect to. */
const wildcards: Readonly<Record<string, string>> = { "0.0.0.0": "127.0.0.1", "::": "::1", "0": "127.0.0.1" }

export type Variables = Readonly<Record<string, string | undefined>>

/** The base URL of a gateway with these variables; undefined for an invalid `PORT`. */
export const addressFrom = (variables: Variables): string | undefined => {
  const host = variables["HOST"]?.trim() || "127.0.0.1"
  const port = variables["PORT"]?.trim() || "5001"
  if (!/^\d+$/.test(port) || Number(port) < 1 || Number(port) > 65_535) return undefined
  const address = wildcards[host] ?? host
  return `http://${address.includes(":") ? `[${address}]` : address}:${port}`
}

const answerOf = async (url: URL): Promise<typeof get> =>
  url.protocol === "https:" ? (await import("node:https")).get : get

/** Converts to whole milliseconds within the range of timers. */
const limitOf = (seconds: number): number => Math.min(Math.max(0, Math.ceil(seconds * 1000)), 0x7fff_ffff)

/** Asks an address. The certificate of the machine's own gateway is for the name that clients use, so it is not checked. */
const ask = async (url: URL, timeout: number, isOwn: boolean): Promise<string | undefined> => {
  const request = await answerOf(url)
  return new Promise((resolve) => {
    const signal = AbortSignal.timeout(limitOf(timeout))
    const options = { agent: false, signal, rejectUnauthorized: !isOwn }
    request(url, options, (response) => {
      response.resume()
      resolve(response.statusCode === 200 ? undefined : `answered with HTTP ${response.statusCode}`)
    }).on("error", (error: NodeJS.ErrnoException) => {
      resolve(
        signal.aborted ? `did not answer within ${timeout} s` : `cannot be reached (${error.code ?? error.message})`
      )
    })
  })
}

const shown = (address: string): string => address.replace(/^([^/]*\/\/)?[^/]*@/, "$1")

/** Pause between two requests, in milliseconds. */
const pause = 100

/** Repeats the request until it succeeds or the time is up. */
export const askHealth = async (options: HealthOptions, variables: Variables): Promise<Health> => {
  const base = options.url ?? addressFrom(variables)
  if (base === undefined) return no("PORT must be a port number between 1 and 65535")
  if (!URL.canParse(base) || !/^https?:$/.test(new URL(base).protocol)) {
    // A malformed address may contain slashes within its credentials.
    return no(`${base.replace(/^([^/]*\/\/)?.*@/s, "$1")} is not an http or https URL`)
  }
  const url = new URL(`${base.replace(/\/+$/, "")}/${options.live ? "healthz" : "readyz"}`)
  const end = performance.now() + options.wait * 1000
  for (;;) {
    const answer = await ask(url, options.timeout, false)
    // A gateway with TLS closes a connection that speaks http.
    const isOther = answer !== undefined && options.url === undefined && !answer.includes("ECONNREFUSED")
    const reason =
      isOther && await ask(new URL(`https:${url.href.slice("http:".length)}`), options.timeout, true) === undefined
        ? undefined
        : answer
    if (reason === undefined) return { _tag: "Yes", answer: options.live ? "live" : "ready" }
    if (performance.now() >= end) return no(`${shown(url.href)} ${reason}`)
    await sleep(pause)
  }
}

export const report = (health: Health): void => {
  if (health._tag === "Yes") process.stdout.write(`${health.answer}\n`)
  else {
    process.stderr.write(`${health.reason}\n`)
    process.exitCode = 1
  }
}

/** Runs the command line if it is a health check, and returns whether it was. */
export const checkHealth = async (
  [command, ...args]: ReadonlyArray<string>,
  variables: Variables
): Promise<boolean> => {
  const options = command === "health" ? parseHealth(args) : undefined
  if (options === undefined) return false
  report(await askHealth(options, variables))
  return true
}
