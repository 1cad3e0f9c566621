// Objects that only their class can copy are hidden from the compiler and kept: C++11 and later.
#include "cyclescope.h"
#include <cstdio>
#include <string>
#include <vector>

struct pair_of_numbers {
    int one, other;
};

int main()
{
    std::string text = "text";
    std::vector<int> numbers(3, 7);
    const std::vector<int> fixed(1, 1);
    pair_of_numbers pair = {1, 2};
    char letters[4] = {'a', 'b', 'c', 'd'};
    double number = 1.5;
    int *place = &pair.one;

    CYCLESCOPE_HIDE(text);
    CYCLESCOPE_HIDE(numbers);
    CYCLESCOPE_HIDE(pair);
    CYCLESCOPE_HIDE(letters);
    CYCLESCOPE_HIDE(number);
    CYCLESCOPE_HIDE(place);
    CYCLESCOPE_KEEP(text);
    CYCLESCOPE_KEEP(numbers);
    CYCLESCOPE_KEEP(fixed);
    CYCLESCOPE_KEEP(pair);
    CYCLESCOPE_KEEP(letters);
    CYCLESCOPE_KEEP(number);
    CYCLESCOPE_KEEP(place);
    return text != "text" || numbers.at(2) != 7 || pair.other != 2 || letters[3] != 'd' || number < 1.5 || *place != 1;
}

// The compiler must write all elements: without CYCLESCOPE_KEEP it removes the loop.
void fill(int number)
{
    std::vector<int> numbers(8);
    for (int place = 0; place < 8; place++)
        numbers[place] = 0x1234567 + number;
    CYCLESCOPE_KEEP(numbers);
}
