/**
 * The inspectors of all processes of the gateways. Workers come and go.
 */
import { readFile } from "node:fs/promises"
import path from "node:path"
import { Inspector } from "./inspector.ts"
import { type Gateway, serving } from "./processes.ts"
import { until } from "./until.ts"

/** A process and its inspector. */
export interface Inspected {
  readonly name: string
  readonly pid: number
  readonly inspector: Inspector
}

export class Inspectors {
  private readonly folder: string
  private readonly gateways: ReadonlyArray<Gateway>
  private readonly workers: number
  private readonly open = new Map<number, Inspected>()
  /** Workers so far, by gateway. */
  private readonly met = new Map<string, number>()

  constructor(folder: string, gateways: ReadonlyArray<Gateway>, workers: number) {
    this.folder = folder
    this.gateways = gateways
    this.workers = workers
  }

  /** The running processes, each gateway before its workers. A process that is still starting is missing. */
  async all(): Promise<ReadonlyArray<Inspected>> {
    const found: Array<Inspected> = []
    for (const gateway of this.gateways) {
      const own = gateway.child.pid!
      const workers = (await serving(gateway, this.workers)).filter((pid) => pid !== own)
      for (const pid of [own, ...workers]) {
        const inspected = await this.meet(pid, gateway, pid === own)
        if (inspected !== undefined) found.push(inspected)
      }
    }
    for (const [pid, inspected] of this.open) if (!found.includes(inspected)) this.open.delete(pid)
    return found
  }

  /** The numbers of all processes. */
  async pids(): Promise<ReadonlyArray<number>> {
    const lists = await Promise.all(this.gateways.map((gateway) => serving(gateway, this.workers)))
    return [...this.gateways.map(({ child }) => child.pid!), ...lists.flat()]
  }

  /** Applies a function to every process. Leaves out those that end meanwhile. */
  async each<A>(of: (inspector: Inspector, inspected: Inspected) => Promise<A>): Promise<ReadonlyArray<A>> {
    const results = await Promise.all((await this.all()).map(async (inspected) => {
      try {
        return [await of(inspected.inspector, inspected)]
      } catch (error) {
        // A process that ends answers with errors before its connection ends.
        if (!await until(async () => !inspected.inspector.isOpen, 2000)) throw error
        return []
      }
    }))
    return results.flat()
  }

  close(): void {
    for (const { inspector } of this.open.values()) inspector.close()
  }

  private async meet(pid: number, { name }: Gateway, isParent: boolean): Promise<Inspected | undefined> {
    const known = this.open.get(pid)
    if (known !== undefined) return known.inspector.isOpen ? known : undefined
    const url = await readFile(path.join(this.folder, String(pid)), "utf8").catch(() => "")
    if (url === "") return undefined
    const inspector = await Inspector.open(url).catch(() => undefined)
    if (inspector === undefined) return undefined
    const number = (this.met.get(name) ?? 0) + 1
    if (!isParent) this.met.set(name, number)
    await inspector.watchDelay()
    const inspected = { name: isParent ? name : `${name} worker ${number}`, pid, inspector }
    this.open.set(pid, inspected)
    return inspected
  }
}
