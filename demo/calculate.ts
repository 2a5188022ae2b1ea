/** Arithmetic without `eval`: a parser by recursive descent. */

/** Throws an Error that names the place for anything but numbers, `+ - * / % ^`, and parentheses. */
export function calculate(expression: string): number {
  const text = expression.replaceAll("×", "*").replaceAll("÷", "/").replaceAll("−", "-");
  let at = 0;

  const peek = (): string | undefined => {
    while (text[at] === " ") at += 1;
    return text[at];
  };
  const takes = (operators: string): string | undefined => {
    const next = peek();
    if (next === undefined || !operators.includes(next)) return undefined;
    at += 1;
    return next;
  };
  const fail = (): never => {
    throw new Error(`cannot read "${expression}" at position ${at + 1}`);
  };

  function sum(): number {
    let value = product();
    for (let sign = takes("+-"); sign; sign = takes("+-")) value += sign === "+" ? product() : -product();
    return value;
  }
  function product(): number {
    let value = power();
    for (let sign = takes("*/%"); sign; sign = takes("*/%")) {
      const right = power();
      value = sign === "*" ? value * right : sign === "/" ? value / right : value % right;
    }
    return value;
  }
  function power(): number {
    const base = factor();
    return takes("^") ? base ** power() : base;
  }
  function factor(): number {
    if (takes("-")) return -factor();
    if (takes("(")) {
      const value = sum();
      return takes(")") ? value : fail();
    }
    peek();
    const digits = /^\d+(\.\d+)?/.exec(text.slice(at))?.[0] ?? fail();
    at += digits.length;
    return Number(digits);
  }

  const value = sum();
  return peek() === undefined ? value : fail();
}
