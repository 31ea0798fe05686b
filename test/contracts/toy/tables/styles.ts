/** The table of styles with that of the toy contract. */
import { styles as actual } from "../../../../src/styles/styles.ts"
import { toyStyle } from "../style.ts"

export const styles = [...actual, toyStyle]
