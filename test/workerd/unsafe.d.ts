/** A module of workerd that only tests may import. */
declare module "workerd:unsafe" {
  const unsafe: {
    /** Every object ends at once, as in a deploy: the next request to one makes a new instance of it. */
    abortAllDurableObjects(): Promise<void>;
  };
  export { unsafe as default };
}
