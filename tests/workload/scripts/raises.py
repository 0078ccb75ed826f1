class OutOfFuel(Exception):
    pass


def burn(step):
    if step == 37:
        try:
            {}["fuel"]
        except KeyError as error:
            raise OutOfFuel(f"step {step}") from error
    return step


def main():
    for step in range(100):
        print(burn(step))


if __name__ == "__main__":
    main()
