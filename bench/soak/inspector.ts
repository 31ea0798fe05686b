/**
 * Reads facts of a process over its inspector: memory after a collection, instances by class, the event loop's delay, descriptors,
 * connections.
 */
import { at, listAt, numberAt, parseJson, textAt } from "./json.ts"

/** Milliseconds between timer ticks. The lateness of a tick is the loop's delay. */
const resolution = 10

/** Installed once in the process: a histogram of the loop's delay since the last sample, and one of the whole load. */
const install = `{
  const { monitorEventLoopDelay } = process.getBuiltinModule("node:perf_hooks")
  const second = monitorEventLoopDelay({ resolution: ${resolution} })
  const load = monitorEventLoopDelay({ resolution: ${resolution} })
  const p99 = (histogram) => histogram.count === 0 ? 0 : histogram.percentile(99) / 1e6
  globalThis.__soak = {
    watch() { second.reset(); second.enable(); load.enable() },
    look_away() { second.disable(); load.disable() },
    delay() { return p99(load) },
    sample() {
      const delay = p99(second)
      second.reset()
      const { rss, heapUsed } = process.memoryUsage()
      const { user, system } = process.cpuUsage()
      const descriptors = process.getBuiltinModule("node:fs").readdirSync("/dev/fd").length - 1
      return { rss, heapUsed, cpu: (user + system) / 1e6, delay, descriptors }
    }
  }
}`

/** One sample of the process. */
export interface ProcessSample {
  /** Bytes. */
  readonly rss: number
  readonly heapUsed: number
  /** CPU seconds so far. */
  readonly cpu: number
  /** The 99th percentile of the loop's delay in milliseconds. */
  readonly delay: number
  readonly descriptors: number
}

/** A connection to the inspector of a process. */
export class Inspector {
  private readonly socket: WebSocket
  private readonly waiting = new Map<number, (message: unknown) => void>()
  private chunks: Array<string> = []
  private last = 0

  private constructor(socket: WebSocket) {
    this.socket = socket
    socket.addEventListener("message", ({ data }) => {
      const message = parseJson(String(data))
      if (textAt(message, "method") === "NodeRuntime.waitingForDisconnect") return socket.close()
      if (textAt(message, "method") === "HeapProfiler.addHeapSnapshotChunk") {
        this.chunks.push(textAt(message, "params", "chunk"))
        return
      }
      const id = numberAt(message, "id")
      if (id === undefined) return
      this.waiting.get(id)?.(message)
      this.waiting.delete(id)
    })
    socket.addEventListener("close", () => {
      for (const settle of this.waiting.values()) settle({ error: { message: "the inspector's connection ended" } })
      this.waiting.clear()
    })
  }

  static async open(url: string): Promise<Inspector> {
    const socket = new WebSocket(url)
    await new Promise<void>((resolve, reject) => {
      socket.addEventListener("open", () => resolve())
      socket.addEventListener("error", () => reject(new Error(`no inspector at ${url}`)))
    })
    const inspector = new Inspector(socket)
    // A process that ends waits for the end of the connection.
    await inspector.call("NodeRuntime.notifyWhenWaitingForDisconnect", { enabled: true })
    await inspector.evaluate(install)
    return inspector
  }

  get isOpen(): boolean {
    return this.socket.readyState === WebSocket.OPEN
  }

  private call(method: string, params: object = {}): Promise<unknown> {
    const id = ++this.last
    return new Promise((resolve, reject) => {
      if (!this.isOpen) return reject(new Error("the inspector's connection has ended"))
      this.waiting.set(id, (message) => {
        const problem = textAt(message, "error", "message") ||
          textAt(message, "result", "exceptionDetails", "exception", "description")
        if (problem === "") resolve(at(message, "result"))
        else reject(new Error(`${method}: ${problem}`))
      })
      this.socket.send(JSON.stringify({ id, method, params }))
    })
  }

  private async evaluate(expression: string): Promise<unknown> {
    return at(await this.call("Runtime.evaluate", { expression, returnByValue: true }), "result", "value")
  }

  /** Memory, CPU time, descriptors, and the loop's delay since the last sample. */
  async sample(): Promise<ProcessSample> {
    const value = await this.evaluate("__soak.sample()")
    const of = (name: string) => numberAt(value, name) ?? Number.NaN
    return {
      rss: of("rss"),
      heapUsed: of("heapUsed"),
      cpu: of("cpu"),
      delay: Math.max(0, of("delay") - resolution),
      descriptors: of("descriptors")
    }
  }

  /** Starts the measurement of the loop's delay under load. */
  async watchDelay(): Promise<void> {
    await this.evaluate("__soak.watch()")
  }

  /** Ends the measurement, before collections that the soak itself requests. */
  async ignoreDelay(): Promise<void> {
    await this.evaluate("__soak.look_away()")
  }

  /** The 99th percentile of the loop's delay under load, in milliseconds. */
  async delay(): Promise<number> {
    return Math.max(0, Number(await this.evaluate("__soak.delay()")) - resolution)
  }

  async collectGarbage(): Promise<void> {
    await this.call("HeapProfiler.collectGarbage")
  }

  /** Open client connections of all servers of the process. */
  async connections(): Promise<number> {
    const evaluated = await this.call("Runtime.evaluate", {
      expression: "process.getBuiltinModule('node:net').Server.prototype",
      objectGroup: "soak"
    })
    const prototypeObjectId = textAt(evaluated, "result", "objectId")
    const queried = await this.call("Runtime.queryObjects", { prototypeObjectId, objectGroup: "soak" })
    const counted = await this.call("Runtime.callFunctionOn", {
      objectId: textAt(queried, "objects", "objectId"),
      functionDeclaration:
        "function() { return this.reduce((sum, each) => sum + (Number.isInteger(each._connections) ? each._connections : 0), 0) }",
      returnByValue: true
    })
    await this.call("Runtime.releaseObjectGroup", { objectGroup: "soak" })
    return numberAt(counted, "result", "value") ?? Number.NaN
  }

  /** Number of instances of each class on the heap. */
  async instances(): Promise<ReadonlyMap<string, number>> {
    this.chunks = []
    await this.call("HeapProfiler.takeHeapSnapshot", { reportProgress: false, captureNumericValue: false })
    const snapshot = parseJson(this.chunks.join(""))
    this.chunks = []
    const fields = listAt(snapshot, "snapshot", "meta", "node_fields")
    const kinds = listAt(snapshot, "snapshot", "meta", "node_types", 0)
    const nodes = listAt(snapshot, "nodes")
    const strings = listAt(snapshot, "strings")
    const [type, name] = [fields.indexOf("type"), fields.indexOf("name")]
    const object = kinds.indexOf("object")
    const counts = new Map<string, number>()
    for (let i = 0; i < nodes.length; i += fields.length) {
      if (nodes[i + type] !== object) continue
      const className = String(strings[Number(nodes[i + name])])
      counts.set(className, (counts.get(className) ?? 0) + 1)
    }
    return counts
  }

  close(): void {
    this.socket.close()
  }
}
