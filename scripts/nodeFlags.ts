/** The options of Node with which the gateway is shipped: in the executable, in benches, and, as it has them in a line of shell, in `scripts/start`. */
export const nodeFlags: ReadonlyArray<string> = ["--memory-balancer"]
