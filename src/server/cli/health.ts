/**
 * `health`: whether a gateway answers, for health checks of containers and services. Loads nothing but Node's own modules.
 */
import { get } from "node:http"
import { setTimeout as sleep } from "node:timers/promises"
import { parseArgs } from "node:util"

/** What to ask, and how long. Times are in seconds. */
export interface HealthOptions {
  /** Base address of the gateway; without it that of the gateway with the same `HOST` and `PORT`. */
  readonly url: string | undefined
  /** Asks `/healthz`, whether it lives, in the place of `/readyz`. */
  readonly live: boolean
  /** How long an answer may take. */
  readonly timeout: number
  /** How long to ask again until the answer is yes. */
  readonly wait: number
}

export const healthDefaults = { timeout: 3, wait: 0 } as const

/** Which is it: what the gateway said yes to, or why there is no yes, in one line. */
export type Health =
  | { readonly _tag: "Yes"; readonly answer: "ready" | "live" }
  | { readonly _tag: "No"; readonly reason: string }

const no = (reason: string): Health => ({ _tag: "No", reason })

const seconds = (text: string | undefined, absent: number): number | undefined =>
  text === undefined ? absent : /^\d+(?:\.\d+)?$/.test(text) ? Number(text) : undefined

/** The options of a command line; undefined where it has anything else, which the whole command line then tells of. */
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

/** Addresses to listen on that are none to ask: the gateway listens on all of the machine's. */
const wildcards: Readonly<Record<string, string>> = { "0.0.0.0": "127.0.0.1", "::": "::1", "0": "127.0.0.1" }

/** Variables of the environment. */
export type Variables = Readonly<Record<string, string | undefined>>

/** The base address of the gateway that has these variables; undefined where `PORT` is no port that can be asked. */
export const addressFrom = (variables: Variables): string | undefined => {
  const host = variables["HOST"]?.trim() || "127.0.0.1"
  const port = variables["PORT"]?.trim() || "5001"
  if (!/^\d+$/.test(port) || Number(port) < 1 || Number(port) > 65_535) return undefined
  const address = wildcards[host] ?? host
  return `http://${address.includes(":") ? `[${address}]` : address}:${port}`
}

const answerOf = async (url: URL): Promise<typeof get> =>
  url.protocol === "https:" ? (await import("node:https")).get : get

/** A time limit in milliseconds as timers take it: whole, and no more than they can count. */
const limitOf = (seconds: number): number => Math.min(Math.max(0, Math.ceil(seconds * 1000)), 0x7fff_ffff)

const ask = async (url: URL, timeout: number): Promise<string | undefined> => {
  const request = await answerOf(url)
  return new Promise((resolve) => {
    const signal = AbortSignal.timeout(limitOf(timeout))
    request(url, { agent: false, signal }, (response) => {
      response.resume()
      resolve(response.statusCode === 200 ? undefined : `answered with HTTP ${response.statusCode}`)
    }).on("error", (error: NodeJS.ErrnoException) => {
      resolve(
        signal.aborted ? `did not answer within ${timeout} s` : `cannot be reached (${error.code ?? error.message})`
      )
    })
  })
}

/** An address as it may be shown: without who asks and their password. */
const shown = (address: string): string => address.replace(/^([^/]*\/\/)?[^/]*@/, "$1")

/** Time between two questions, in milliseconds. */
const pause = 100

/** Asks until the answer is yes or the time is over. */
export const askHealth = async (options: HealthOptions, variables: Variables): Promise<Health> => {
  const base = options.url ?? addressFrom(variables)
  if (base === undefined) return no("PORT must be a port number between 1 and 65535")
  if (!URL.canParse(base) || !/^https?:$/.test(new URL(base).protocol)) {
    // What cannot be read as an address may have its slashes anywhere.
    return no(`${base.replace(/^([^/]*\/\/)?.*@/s, "$1")} is no http or https address`)
  }
  const url = new URL(`${base.replace(/\/+$/, "")}/${options.live ? "healthz" : "readyz"}`)
  const end = performance.now() + options.wait * 1000
  for (;;) {
    const reason = await ask(url, options.timeout)
    if (reason === undefined) return { _tag: "Yes", answer: options.live ? "live" : "ready" }
    if (performance.now() >= end) return no(`${shown(url.href)} ${reason}`)
    await sleep(pause)
  }
}

/** Tells the outcome, and sets the exit code. */
export const report = (health: Health): void => {
  if (health._tag === "Yes") process.stdout.write(`${health.answer}\n`)
  else {
    process.stderr.write(`${health.reason}\n`)
    process.exitCode = 1
  }
}

/** Does what the command line asks for where that is a health check, and says whether it was. */
export const checkHealth = async (
  [command, ...args]: ReadonlyArray<string>,
  variables: Variables
): Promise<boolean> => {
  const options = command === "health" ? parseHealth(args) : undefined
  if (options === undefined) return false
  report(await askHealth(options, variables))
  return true
}
